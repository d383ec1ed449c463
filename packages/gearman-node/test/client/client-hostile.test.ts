import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { Client } from '../../src/client/client.ts';
import type { Job } from '../../src/client/submitted-job.ts';
import { GearmanError, type GearmanErrorCode, JobLostError } from '../../src/errors.ts';
import { encodePacket } from '../fixtures/encode-packet.ts';
import type { RawPeer } from '../fixtures/raw-peer.ts';
import { ScriptedServer } from '../fixtures/scripted-server.ts';

/** A client with one job in flight, and its job server, whose side the test plays. */
async function scripted(t: TestContext, timeout?: number): Promise<{ job: Job; server: RawPeer }> {
  const scriptedServer = await ScriptedServer.listen();
  const client = new Client({ servers: [scriptedServer.address], timeout });
  t.after(async () => {
    await client.close();
    await scriptedServer.close();
  });
  const job = client.submit('f', 'payload');
  const server = await scriptedServer.accept();
  await server.until('SUBMIT_JOB');
  return { job, server };
}

async function assertLost(job: Job, code: GearmanErrorCode): Promise<void> {
  await assert.rejects(job.result, (error) => {
    assert.ok(error instanceof JobLostError);
    assert.ok(error.cause instanceof GearmanError);
    assert.equal(error.cause.code, code);
    return true;
  });
}

test('a client disconnects from a server that declares a packet of 4 GiB', async (t) => {
  const { job, server } = await scripted(t);
  const header = encodePacket('RES', 'JOB_CREATED', '');
  header.writeUInt32BE(0xffff_ffff, 8);
  server.sendBytes(header);
  await assertLost(job, 'packet-too-large');
  await server.closed;
});

test('a client disconnects from a server that never finishes a packet', async (t) => {
  const { job, server } = await scripted(t, 2000);
  server.sendBytes(encodePacket('RES', 'JOB_CREATED', 'H:x:1').subarray(0, -1));
  await assertLost(job, 'server-silent');
  await server.closed;
});

test('a client treats a server that ends its sending side as lost', async (t) => {
  const { job, server } = await scripted(t);
  server.send('JOB_CREATED', 'H:x:1');
  server.socket.end(); // but continues reading
  await assertLost(job, 'connection-lost');
  await server.closed;
});

test('a client assembles a result that arrives one byte at a time', async (t) => {
  const { job, server } = await scripted(t);
  const reply = [
    encodePacket('RES', 'JOB_CREATED', 'H:x:1'),
    encodePacket('RES', 'WORK_COMPLETE', 'H:x:1', 'a \0 result'),
  ];
  for (const byte of Buffer.concat(reply)) {
    await new Promise((resolve) => server.socket.write(Buffer.of(byte), resolve));
  }
  assert.equal(String(await job), 'a \0 result');
});
