import type { TestContext } from 'node:test';
import { Admin, Client, JobServer, type ServerAddress, Worker } from '@nodepool-builder/gearman-node';
import { RawPeer } from '../../../packages/gearman-node/test/fixtures/raw-peer.ts';
import { startGearmand } from '../../fixtures/gearmand.ts';

/** A job server with its peers, until the end of the test. */
export interface Site {
  readonly address: Required<Pick<ServerAddress, 'host' | 'port'>>;
  readonly client: Client;
  readonly admin: Admin;
  /** Starts a worker; its default concurrency is 1. */
  readonly worker: (concurrency?: number) => Worker;
  /** A connection that sends and receives raw packets. */
  readonly connect: () => Promise<RawPeer>;
}

/** The job servers that must behave the same. */
export const SERVERS: Readonly<Record<string, (t: TestContext) => Promise<Site>>> = {
  gearmand: async (t) => {
    const gearmand = await startGearmand();
    t.after(() => gearmand.stop());
    return site(t, gearmand.port);
  },
  'the embedded job server': async (t) => {
    const server = new JobServer();
    t.after(() => server.close());
    return site(t, (await server.listen(0)).port);
  },
};

/** Peers of the server on a port of this machine. */
export function site(t: TestContext, port: number): Site {
  const address = { host: '127.0.0.1', port };
  const client = new Client({ servers: [address] });
  const admin = new Admin(address);
  t.after(() => Promise.all([client.close(), admin.close()]));
  return {
    address,
    client,
    admin,
    worker: (concurrency = 1) => {
      const worker = new Worker({
        servers: [address],
        concurrency,
        reconnect: { minDelay: 10, maxDelay: 50 },
      });
      t.after(() => worker.close());
      return worker;
    },
    connect: async () => {
      const peer = await RawPeer.connect(port);
      t.after(() => peer.close());
      return peer;
    },
  };
}

/** Handler that runs until the test ends it. */
export function held(): {
  handler: () => Promise<string>;
  started: Promise<void>;
  end: (result: string) => void;
} {
  const started = Promise.withResolvers<void>();
  const result = Promise.withResolvers<string>();
  const handler = async (): Promise<string> => {
    started.resolve();
    return await result.promise;
  };
  return { handler, started: started.promise, end: result.resolve };
}
