import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { GearmanError } from '../../src/errors.ts';
import { Worker } from '../../src/worker/worker.ts';
import { encodePacket } from '../fixtures/encode-packet.ts';
import { JobServerSite } from '../fixtures/job-server-site.ts';
import type { RawPeer } from '../fixtures/raw-peer.ts';
import { ScriptedServer } from '../fixtures/scripted-server.ts';

/** A worker with two job servers. The test plays one, the other behaves normally. */
async function scripted(t: TestContext, timeout?: number) {
  const site = await JobServerSite.start(t);
  const scriptedServer = await ScriptedServer.listen();
  const worker = new Worker({
    servers: [scriptedServer.address, site.address],
    concurrency: 2,
    reconnect: { minDelay: 1 },
    timeout,
  });
  worker.add('f', ({ payload }) => payload);
  t.after(async () => {
    await scriptedServer.close();
    await worker.close();
  });
  const server = await scriptedServer.accept();
  const lost = new Promise<GearmanError>((resolve) => {
    worker.on('disconnect', ({ port }, error) => {
      if (port === scriptedServer.port) resolve(error);
    });
  });
  await server.until('GRAB_JOB_UNIQ');
  return { server, site, lost };
}

/** Asserts that the worker has disconnected from one server and serves the other. */
async function assertServesOther(server: RawPeer, site: JobServerSite): Promise<void> {
  await server.closed;
  const [client, handle] = await site.submit('f', 'still there');
  assert.deepEqual(await client.next(), ['WORK_COMPLETE', handle, 'still there']);
}

test('a worker disconnects from a server that declares a packet of 4 GiB, and still serves the other', async (t) => {
  const { server, site, lost } = await scripted(t);
  const header = encodePacket('RES', 'NO_JOB');
  header.writeUInt32BE(0xffff_ffff, 8);
  server.sendBytes(header);
  assert.equal((await lost).code, 'packet-too-large');
  await assertServesOther(server, site);
});

test('a worker disconnects from a server that never finishes a job packet, and still serves the other', async (t) => {
  const { server, site, lost } = await scripted(t, 2000);
  server.sendBytes(encodePacket('RES', 'JOB_ASSIGN_UNIQ', 'H:x:1', 'f', '', 'payload').subarray(0, -1));
  assert.equal((await lost).code, 'server-silent');
  await assertServesOther(server, site);
});

test('a worker runs a job that arrives one byte at a time', async (t) => {
  const { server } = await scripted(t);
  for (const byte of encodePacket('RES', 'JOB_ASSIGN_UNIQ', 'H:x:1', 'f', '', 'payload')) {
    await new Promise((resolve) => server.socket.write(Buffer.of(byte), resolve));
  }
  assert.deepEqual((await server.until('WORK_COMPLETE')).at(-1), ['WORK_COMPLETE', 'H:x:1', 'payload']);
});
