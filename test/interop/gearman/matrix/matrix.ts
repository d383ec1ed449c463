import { suite, test } from 'node:test';
import { Admin } from '@nodepool-builder/gearman-node';
import { areAble } from './abilities.ts';
import { CASES } from './cases.ts';
import { clients } from './clients.ts';
import { compilePeers } from './compiled.ts';
import type { RunningServer, TestServer } from './servers.ts';
import { workers } from './workers.ts';

/** High concurrency, because tests mostly wait for programs. */
const CONCURRENCY = 4;

/**
 * Declares the tests of each client and worker with one server, for all cases that they support. At least one of
 * the three is ours.
 */
export async function testServer(serverName: string, server: TestServer): Promise<void> {
  const compiled = await compilePeers();
  let running: RunningServer;
  let admin: Admin;
  let count = 0;

  setUp(async (undo) => {
    undo(() => compiled.remove());
    running = await server.start();
    undo(() => running.stop());
    admin = new Admin({ host: '127.0.0.1', port: running.port });
    undo(() => admin.close());
  });

  for (const [clientName, client] of Object.entries(clients(compiled))) {
    for (const [workerName, worker] of Object.entries(workers(compiled))) {
      if (![clientName, serverName, workerName].includes('ours')) continue;
      const peers = [client, server, worker];
      if (!areAble(peers, worker.needs)) continue;
      suite(
        `client ${clientName}, server ${serverName}, worker ${workerName}`,
        {
          concurrency: CONCURRENCY,
        },
        () => {
          for (const [what, { needs, run }] of Object.entries(CASES)) {
            if (!areAble(peers, needs)) continue;
            test(`${what} (client ${clientName}, server ${serverName}, worker ${workerName})`, async (t) => {
              count += 1;
              const { port } = running;
              const id = count;
              await run({ t, port, admin, client, worker, name: (behaviour) => `${behaviour}:${id}` });
            });
          }
        },
      );
    }
  }
}

import { setUp } from '../../../fixtures/set-up.ts';
