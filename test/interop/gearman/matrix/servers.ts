import { JobServer } from '@nodepool-builder/gearman-node';
import { startGearmand } from '../../../fixtures/gearmand.ts';
import { end, launchOnFreePort } from '../../../fixtures/job-server-process.ts';
import type { Peer } from './abilities.ts';

/** A running job server. */
export interface RunningServer {
  readonly port: number;
  readonly stop: () => Promise<void>;
}

/** A kind of job server. */
export interface TestServer extends Peer {
  readonly start: () => Promise<RunningServer>;
}

const REQUEUES = 'it gives the job to another worker';
const UNKNOWN_TO_PERL = 'Gearman::Server replies ERROR to the packet';

/** The kinds of job servers. */
export const SERVERS = {
  gearmand: {
    cannot: { 'fail for the dead': REQUEUES },
    start: startGearmand,
  },
  ours: {
    cannot: { 'fail for the dead': REQUEUES },
    start: async () => {
      const server = new JobServer();
      const { port } = await server.listen(0);
      return { port, stop: () => server.close() };
    },
  },
  Perl: {
    cannot: {
      GRAB_JOB_UNIQ: UNKNOWN_TO_PERL,
      GRAB_JOB_ALL: UNKNOWN_TO_PERL,
      'low priority': UNKNOWN_TO_PERL,
      data: UNKNOWN_TO_PERL,
      warning: UNKNOWN_TO_PERL,
      reducer: UNKNOWN_TO_PERL,
      scheduled: UNKNOWN_TO_PERL,
      'query by key': UNKNOWN_TO_PERL,
      'end by exception':
        'a job is open until its WORK_FAIL, and most workers send none after WORK_EXCEPTION',
      requeue: 'it fails the job of a worker that is gone',
    },
    start: async () => {
      const { port, child } = await launchOnFreePort('/usr/bin/gearmand', (free) => [
        '-L',
        '127.0.0.1',
        '-p',
        String(free),
      ]);
      return { port, stop: () => end(child, 'SIGTERM') };
    },
  },
} as const;
SERVERS satisfies Readonly<Record<string, TestServer>>;
