import type { WorkerJob } from '@nodepool-builder/gearman-node';

/** A job as a worker passes it to its handler; its status is discarded. */
export function fakeJob(functionName: string, argument = ''): WorkerJob {
  return {
    handle: 'H:localhost:1',
    function: functionName,
    unique: '',
    reducer: '',
    payload: Buffer.from(argument),
    signal: new AbortController().signal,
    connectionLost: new AbortController().signal,
    acknowledged: Promise.resolve(),
    sendStatus: () => undefined,
    sendData: () => Promise.resolve(),
    sendWarning: () => Promise.resolve(),
  };
}
