import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { PassThrough } from 'node:stream';
import type { TestContext } from 'node:test';
import type { Ability, Peer } from './abilities.ts';
import { type CompiledPeers, PEERS } from './compiled.ts';
import { startOurWorker } from './our-worker.ts';
import { type Command, type STREAMS, startProgram } from './program.ts';

/** A running worker for one function. */
export interface RunningWorker {
  /** Returns the payload of the next job with the behaviour `held`, once it runs. */
  readonly nextJob: () => Promise<string>;
  /** Releases one job, which is held now or later. */
  readonly release: () => void;
}

/** A worker that can die. */
export interface MortalWorker extends RunningWorker {
  /** Kills it, as in a crash. */
  readonly kill: () => Promise<void>;
}

type Start<T> = (t: TestContext, port: number, functionName: string) => T;

/** A kind of worker. */
export interface TestWorker extends Peer {
  /** Features that it requires of a server. */
  readonly needs: readonly Ability[];
  /** Starts one for a function `BEHAVIOUR:ANYTHING`. It ends with the test. */
  readonly start: Start<RunningWorker>;
  /** Starts one in its own process. */
  readonly startMortal: Start<MortalWorker>;
}

const COMMAND_JOB = join(PEERS, 'command-job.sh');
const ONLY_A_COMMAND = 'the command that it runs has no way to send it';

/** The kinds of workers. */
export function workers({ worker }: CompiledPeers): Readonly<Record<string, TestWorker>> {
  return {
    ours: {
      cannot: {},
      needs: [],
      start: startInProcess,
      startMortal: program((port, name) => [
        process.execPath,
        '--conditions=@nodepool-builder/source',
        join(PEERS, 'worker.ts'),
        port,
        name,
      ]).startMortal,
    },
    'libgearman (GRAB_JOB)': {
      cannot: { reducer: 'GRAB_JOB does not bring the reducer' },
      needs: [],
      ...program((port, name) => [worker, port, name, 'plain']),
    },
    'libgearman (GRAB_JOB_UNIQ)': {
      cannot: { reducer: 'GRAB_JOB_UNIQ does not bring the reducer' },
      needs: ['GRAB_JOB_UNIQ'],
      ...program((port, name) => [worker, port, name, 'unique']),
    },
    'libgearman (GRAB_JOB_ALL)': {
      cannot: {},
      needs: ['GRAB_JOB_ALL'],
      ...program((port, name) => [worker, port, name, 'all']),
    },
    Perl: {
      cannot: {
        'empty result': 'it leaves out the NUL before an empty result: gearmand waits for more, and hangs up',
        reducer: 'Gearman::Worker does not know them',
      },
      needs: [],
      ...program((port, name) => ['perl', join(PEERS, 'worker.pl'), port, name]),
    },
    'gearman -w': {
      cannot: {
        status: ONLY_A_COMMAND,
        data: ONLY_A_COMMAND,
        warning: ONLY_A_COMMAND,
        exception: ONLY_A_COMMAND,
        reducer: ONLY_A_COMMAND,
      },
      needs: ['GRAB_JOB_ALL'],
      ...program(
        (port, name) => [
          'gearman',
          '-w',
          '-h',
          '127.0.0.1',
          '-p',
          port,
          '-f',
          name,
          '--',
          COMMAND_JOB,
          name.slice(0, name.indexOf(':')),
        ],
        'children',
      ),
    },
  };
}

/** Starts workers in separate programs. */
function program(
  command: (port: string, functionName: string) => Command,
  streams: keyof typeof STREAMS = 'own',
): Pick<TestWorker, 'start' | 'startMortal'> {
  const start: Start<MortalWorker> = (t, port, functionName) => {
    const { nextLine, stdin, kill } = startProgram(t, command(String(port), functionName), streams);
    return {
      nextJob: async () => (await nextLine()).replace(/^job /, ''),
      release: () => stdin.write('\n'),
      kill,
    };
  };
  return { start, startMortal: start };
}

/** Starts our worker in this process, which is faster than in its own. */
function startInProcess(t: TestContext, port: number, functionName: string): RunningWorker {
  const [input, output] = [new PassThrough(), new PassThrough()];
  const worker = startOurWorker(port, functionName, input, output);
  t.after(() => {
    input.end();
    return worker.close();
  });
  const lines = createInterface(output)[Symbol.asyncIterator]();
  return {
    nextJob: async () => String((await lines.next()).value).replace(/^job /, ''),
    release: () => input.write('\n'),
  };
}
