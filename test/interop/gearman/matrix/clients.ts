import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import type { TestContext } from 'node:test';
import {
  Client,
  type Job,
  JobExceptionError,
  JobFailedError,
  type JobPriority,
} from '@nodepool-builder/gearman-node';
import type { Peer } from './abilities.ts';
import { type CompiledPeers, PEERS } from './compiled.ts';
import { type Command, startProgram } from './program.ts';

/** A job to submit. */
export interface Submission {
  /** `scheduled`: a background job with a start time in 1970. */
  readonly mode: 'foreground' | 'background' | 'scheduled';
  readonly priority: JobPriority;
  readonly function: string;
  readonly unique: string;
  readonly payload: Uint8Array;
}

/** A job as its client sees it. */
export interface ClientJob {
  /** Handle of the job, once the server has accepted it. */
  readonly handle: () => Promise<string>;
  /** Later events of the job, as the lines that the peers' programs print. */
  readonly heard: () => Promise<string[]>;
}

/** A kind of client. */
export interface TestClient extends Peer {
  readonly submit: (t: TestContext, port: number, submission: Submission) => ClientJob;
  /** Queries the status of a job: `known 0|1 running 0|1`. */
  readonly query?: (t: TestContext, port: number, handle: string) => Promise<string>;
  /** Queries the status of the job with a unique key. */
  readonly queryKey?: (t: TestContext, port: number, key: string) => Promise<string>;
  /** Submits a job whose function passes its parts to the reducer. Returns the result as a line. */
  readonly reduce?: (
    t: TestContext,
    port: number,
    functionName: string,
    reducer: string,
    payload: string,
  ) => Promise<string>;
}

/** The kinds of clients. */
export function clients({ client }: CompiledPeers): Readonly<Record<string, TestClient>> {
  const perl = ['perl', join(PEERS, 'client.pl')] as const;
  return {
    ours: {
      cannot: {},
      submit: submitOurs,
      query: async (t, port, handle) => {
        const { known, running } = await ourClient(t, port).status(handle);
        return `known ${Number(known)} running ${Number(running)}`;
      },
      queryKey: async (t, port, key) => {
        const { known, running } = await ourClient(t, port).statusByUnique(key);
        return `known ${Number(known)} running ${Number(running)}`;
      },
      reduce: async (t, port, functionName, reducer, payload) => {
        const result = await ourClient(t, port).submit(functionName, payload, { reducer });
        return `complete ${result.toString('hex')}`;
      },
    },
    libgearman: {
      cannot: {},
      submit: submitWith([client]),
      query: queryWith([client], 'query'),
      queryKey: queryWith([client], 'query-key'),
      reduce: async (t, port, functionName, reducer, payload) => {
        const program = startProgram(t, [client, String(port), 'reduce', '', functionName, '', reducer]);
        program.stdin.end(payload);
        return await program.nextLine();
      },
    },
    Perl: {
      cannot: {
        reducer: 'Gearman::Client does not know them',
        scheduled: 'Gearman::Client does not know them',
        'query by key': 'Gearman::Client does not know GET_STATUS_UNIQUE',
      },
      submit: submitWith(perl),
      query: queryWith(perl, 'query'),
    },
    gearman: {
      cannot: {
        handle: 'it does not tell the handle of a job',
        query: 'it has no such option',
        'query by key': 'it has no such option',
        scheduled: 'it has no such option',
        status: 'it mixes progress and result in one output',
        data: 'it mixes progress and result in one output',
        warning: 'it mixes progress and result in one output',
        exception: 'it does not tell it from a failure',
        reducer: 'it has no such option',
      },
      submit: submitWithCommand,
    },
  };
}

function ourClient(t: TestContext, port: number): Client {
  const client = new Client({ servers: [{ host: '127.0.0.1', port }] });
  t.after(() => client.close());
  return client;
}

function submitOurs(t: TestContext, port: number, submission: Submission): ClientJob {
  const { function: name, payload, mode, ...options } = submission;
  const background = mode !== 'foreground';
  const startAt = mode === 'scheduled' ? new Date(1000) : undefined;
  const job = ourClient(t, port).submit(name, payload, { ...options, background, startAt });
  return {
    handle: () => job.handle,
    heard: async () => {
      const lines = await hear(job);
      return background ? [] : lines;
    },
  };
}

/** Converts events of our client to the lines that the peers' programs print. */
async function hear(job: Job): Promise<string[]> {
  const lines: string[] = [];
  try {
    for await (const event of job) {
      lines.push(
        event.type === 'status'
          ? `status ${event.numerator} ${event.denominator}`
          : `${event.type} ${event.data.toString('hex')}`,
      );
    }
    lines.push(`complete ${(await job).toString('hex')}`);
  } catch (error) {
    if (error instanceof JobExceptionError) lines.push(`exception ${error.data.toString('hex')}`);
    else if (error instanceof JobFailedError) lines.push('fail');
    else throw error;
  }
  return lines;
}

/** Submits with a client in a separate program. */
function submitWith(command: Command): TestClient['submit'] {
  return (t, port, { mode, priority, function: name, unique, payload }) => {
    const program = startProgram(t, [...command, String(port), mode, priority, name, unique]);
    program.stdin.end(payload);
    const created = program.nextLine().then((line) => {
      if (!line.startsWith('created ')) throw new Error(line);
      return line.slice('created '.length);
    });
    created.catch(() => {}); // a test that awaits neither promise has already failed
    return {
      handle: () => created,
      heard: async () => {
        await created;
        return await program.remainingLines();
      },
    };
  };
}

function queryWith(command: Command, mode: string): NonNullable<TestClient['query']> {
  return async (t, port, job) =>
    await startProgram(t, [...command, String(port), mode, '', job, '']).nextLine();
}

const PRIORITY_OPTIONS: Readonly<Record<JobPriority, readonly string[]>> = {
  low: ['-L'],
  normal: [],
  high: ['-I'],
};

/** Submits with Debian's `gearman`. */
function submitWithCommand(t: TestContext, port: number, submission: Submission): ClientJob {
  const { mode, priority, function: name, unique, payload } = submission;
  const child = spawn('gearman', [
    '-h',
    '127.0.0.1',
    '-p',
    String(port),
    '-f',
    name,
    ...(mode === 'background' ? ['-b'] : []),
    ...PRIORITY_OPTIONS[priority],
    ...(unique === '' ? [] : ['-u', unique]),
  ]);
  t.after(() => child.kill('SIGKILL'));
  const closed = once(child, 'close') as Promise<[code: number | null]>;
  const output = buffer(child.stdout);
  child.stderr.resume();
  child.stdin.end(payload);
  return {
    handle: () => Promise.reject(new Error('gearman does not print the handle')),
    heard: async () => {
      const [[code], result] = await Promise.all([closed, output]);
      if (code !== 0) return ['fail'];
      return mode === 'background' ? [] : [`complete ${result.toString('hex')}`];
    },
  };
}
