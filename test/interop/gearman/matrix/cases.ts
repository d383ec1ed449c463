import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import type { Admin } from '@nodepool-builder/gearman-node';
import { waitUntil } from '../../../fixtures/wait-until.ts';
import type { Ability } from './abilities.ts';
import type { ClientJob, Submission, TestClient } from './clients.ts';
import type { MortalWorker, RunningWorker, TestWorker } from './workers.ts';

/** The server, client and worker of one test. */
export interface Combination {
  readonly t: TestContext;
  readonly port: number;
  readonly admin: Admin;
  readonly client: TestClient;
  readonly worker: TestWorker;
  /** A function name that only this test uses. */
  readonly name: (behaviour: string) => string;
}

/** A test of each client, server and worker with the required features. */
export interface Case {
  readonly needs: readonly Ability[];
  readonly run: (combination: Combination) => Promise<void>;
}

const EVERY_BYTE = Buffer.from([...Array(256).keys(), 0, 0]);
const LARGE = Buffer.alloc(1024 * 1024, EVERY_BYTE);
const DONE = `complete ${hex('done')}`;

/** Cases by title. */
export const CASES: Readonly<Record<string, Case>> = {
  'a job’s payload of any bytes comes back unchanged': {
    needs: [],
    run: async (combination) => {
      const { submit, work } = stage(combination, 'echo');
      work();
      assert.deepEqual(await submit({ payload: EVERY_BYTE }).heard(), [`complete ${hex(EVERY_BYTE)}`]);
    },
  },
  'a job’s payload of a megabyte comes back unchanged': {
    needs: [],
    run: async (combination) => {
      const { submit, work } = stage(combination, 'echo');
      work();
      const [line = ''] = await submit({ payload: LARGE }).heard();
      assert.ok(line === `complete ${hex(LARGE)}`, `${line.length} characters: ${line.slice(0, 100)}`);
    },
  },
  'a function name may contain a space and UTF-8 letters': {
    needs: [],
    run: async (combination) => {
      const { submit, work } = stage(combination, 'echo', ': für alle');
      work();
      assert.deepEqual(await submit({ payload: Buffer.from('a') }).heard(), [`complete ${hex('a')}`]);
    },
  },
  'a job may have an empty payload': {
    needs: [],
    run: async (combination) => {
      const { submit, work } = stage(combination, 'held');
      const worker = work();
      const job = submit({});
      assert.equal(await worker.nextJob(), '');
      worker.release();
      assert.deepEqual(await job.heard(), [DONE]);
    },
  },
  'a job may have an empty result': {
    needs: ['empty result'],
    run: async (combination) => {
      const { submit, work } = stage(combination, 'empty');
      work();
      assert.deepEqual(await submit({ payload: EVERY_BYTE }).heard(), ['complete ']);
    },
  },
  'a client gets a job’s status while it runs': {
    needs: ['status'],
    run: hears('status', ['status 1 2', DONE]),
  },
  'a client gets a job’s data while it runs': {
    needs: ['data'],
    run: hears('data', [`data ${hex('part\0')}`, DONE]),
  },
  'a client gets a job’s warning while it runs': {
    needs: ['warning'],
    run: hears('warning', [`warning ${hex('part\0')}`, DONE]),
  },
  'a client gets a job’s failure': {
    needs: [],
    run: hears('fail', ['fail']),
  },
  'a client gets a job’s exception': {
    needs: ['exception'],
    run: hears('exception', [`exception ${hex('boom\0')}`]),
  },
  'an exception ends the job': {
    needs: ['exception', 'end by exception'],
    run: async (combination) => {
      const { submit, work, counted } = stage(combination, 'exception');
      work();
      await submit({}).heard();
      await counted(0);
    },
  },
  'a job whose start time has come runs': {
    needs: ['scheduled'],
    run: async (combination) => {
      const { submit, work, counted } = stage(combination, 'held');
      assert.deepEqual(await submit({ mode: 'scheduled', payload: EVERY_BYTE }).heard(), []);
      await counted(1);
      const worker = work();
      assert.equal(await worker.nextJob(), hex(EVERY_BYTE));
      worker.release();
      await counted(0);
    },
  },
  'a background job runs when its client is gone': {
    needs: [],
    run: async (combination) => {
      const { submit, work, counted } = stage(combination, 'held');
      assert.deepEqual(await submit({ mode: 'background', payload: EVERY_BYTE }).heard(), []);
      await counted(1);
      const worker = work();
      assert.equal(await worker.nextJob(), hex(EVERY_BYTE));
      worker.release();
      await counted(0);
    },
  },
  'a job with high priority runs first': {
    needs: [],
    run: servedInOrder('foreground', ['normal', 'high'], ['high', 'normal']),
  },
  'jobs with three priorities run in their order': {
    needs: ['low priority'],
    run: servedInOrder('foreground', ['low', 'normal', 'high'], ['high', 'normal', 'low']),
  },
  'background jobs with three priorities run in their order': {
    needs: ['low priority'],
    run: servedInOrder('background', ['low', 'normal', 'high'], ['high', 'normal', 'low']),
  },
  'jobs with one unique key are one job': {
    needs: ['handle'],
    run: async (combination) => {
      const { submit, work, counted } = stage(combination, 'held');
      const jobs = [submit({ unique: 'key' }), submit({ unique: 'key' })];
      const [first, second] = await Promise.all(jobs.map((job) => job.handle()));
      assert.equal(first, second);
      await counted(1);
      const worker = work();
      await worker.nextJob();
      worker.release();
      assert.deepEqual(await Promise.all(jobs.map((job) => job.heard())), [[DONE], [DONE]]);
      await counted(0);
    },
  },
  'a client can query a job’s status while it waits and runs, and after its end': {
    needs: ['handle', 'query'],
    run: async (combination) => {
      const { t, port, client } = combination;
      const { submit, work, counted } = stage(combination, 'held');
      const handle = await submit({ mode: 'background' }).handle();
      assert.equal(await client.query?.(t, port, handle), 'known 1 running 0');
      const worker = work();
      await worker.nextJob();
      assert.equal(await client.query?.(t, port, handle), 'known 1 running 1');
      worker.release();
      await counted(0);
      assert.equal(await client.query?.(t, port, handle), 'known 0 running 0');
    },
  },
  'a client can query a job’s status by its unique key': {
    needs: ['handle', 'query by key'],
    run: async (combination) => {
      const { t, port, client, name } = combination;
      const { submit, work, counted } = stage(combination, 'held');
      const key = name('key');
      await submit({ mode: 'background', unique: key }).handle();
      assert.equal(await client.queryKey?.(t, port, key), 'known 1 running 0');
      const worker = work();
      await worker.nextJob();
      assert.equal(await client.queryKey?.(t, port, key), 'known 1 running 1');
      worker.release();
      await counted(0);
    },
  },
  'a dead worker’s job goes to the next worker': {
    needs: ['requeue'],
    run: async (combination) => {
      const { submit, work, workMortally } = stage(combination, 'held');
      const job = submit({ payload: EVERY_BYTE });
      const dies = workMortally();
      assert.equal(await dies.nextJob(), hex(EVERY_BYTE));
      await dies.kill();
      const next = work();
      assert.equal(await next.nextJob(), hex(EVERY_BYTE));
      next.release();
      assert.deepEqual(await job.heard(), [DONE]);
    },
  },
  'a dead worker’s job fails': {
    needs: ['fail for the dead'],
    run: async (combination) => {
      const { submit, workMortally } = stage(combination, 'held');
      const job = submit({});
      const dies = workMortally();
      await dies.nextJob();
      await dies.kill();
      assert.deepEqual(await job.heard(), ['fail']);
    },
  },
  'a job’s parts go to its reducer': {
    needs: ['reducer'],
    run: async ({ t, port, client, worker, name }) => {
      worker.start(t, port, name('split'));
      worker.start(t, port, name('echo'));
      const line = await client.reduce?.(t, port, name('split'), name('echo'), 'one two three');
      assert.equal(line, `complete ${hex('onetwothree')}`);
    },
  },
};

function hex(bytes: string | Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}

/** Behaviour of the case's function. */
interface Stage {
  readonly submit: (submission: Partial<Submission>) => ClientJob;
  readonly work: () => RunningWorker;
  readonly workMortally: () => MortalWorker;
  /** Waits until the server has this number of waiting and running jobs of the function. */
  readonly counted: (jobs: number) => Promise<void>;
}

function stage({ t, port, admin, client, worker, name }: Combination, behaviour: string, suffix = ''): Stage {
  const functionName = name(behaviour) + suffix;
  const usual = {
    mode: 'foreground',
    priority: 'normal',
    function: functionName,
    unique: '',
    payload: new Uint8Array(),
  } as const;
  return {
    submit: (submission) => client.submit(t, port, { ...usual, ...submission }),
    work: () => worker.start(t, port, functionName),
    workMortally: () => worker.startMortal(t, port, functionName),
    counted: async (jobs) => {
      await waitUntil(`${jobs} jobs of ${functionName}`, async () => {
        const found = (await admin.status()).find((status) => status.name === functionName);
        return (found?.total ?? 0) === jobs;
      });
    },
  };
}

/** Returns a case in which the client gets exactly these events. */
function hears(behaviour: string, lines: readonly string[]): Case['run'] {
  return async (combination) => {
    const { submit, work } = stage(combination, behaviour);
    work();
    assert.deepEqual(await submit({ payload: EVERY_BYTE }).heard(), lines);
  };
}

type Priorities = readonly Submission['priority'][];

/** Returns a case with waiting jobs. */
function servedInOrder(mode: Submission['mode'], submitted: Priorities, served: Priorities): Case['run'] {
  return async (combination) => {
    const { submit, work, counted } = stage(combination, 'held');
    const jobs: ClientJob[] = [];
    for (const priority of submitted) {
      jobs.push(submit({ mode, priority, payload: Buffer.from(priority) }));
      await counted(jobs.length);
    }
    const worker = work();
    const order: string[] = [];
    while (order.length < jobs.length) {
      order.push(Buffer.from(await worker.nextJob(), 'hex').toString());
      worker.release();
    }
    assert.deepEqual(order, served);
    const ends = await Promise.all(jobs.map((job) => job.heard()));
    assert.deepEqual(
      ends,
      jobs.map(() => (mode === 'background' ? [] : [DONE])),
    );
  };
}
