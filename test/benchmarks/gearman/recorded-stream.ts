import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { Client } from '@nodepool-builder/gearman-node';
import { PacketDecoder } from '../../../packages/gearman-node/src/codec/decoder.ts';
import { encodePacket } from '../../../packages/gearman-node/test/fixtures/encode-packet.ts';
import { startGearmand } from '../../fixtures/gearmand.ts';
import type { BenchmarkContext } from '../benchmark.ts';

/** Records what gearmand sends to a worker: JOB_ASSIGN_UNIQ, once for each of many equal jobs. */
export async function recordStream(
  file: string,
  jobs: { readonly count: number; readonly bytes: number },
  { signal }: BenchmarkContext,
): Promise<void> {
  const server = await startGearmand('--threads=1');
  const client = new Client({ servers: [{ host: '127.0.0.1', port: server.port }] });
  const socket = connect(server.port, '127.0.0.1');
  try {
    await once(socket, 'connect', { signal });
    const payload = Buffer.alloc(jobs.bytes, 'x');
    for (let job = 0; job < jobs.count; job += 1) {
      await client.submit('recorded', payload, { background: true, unique: `recorded-${job}`, signal });
    }
    socket.write(encodePacket('REQ', 'CAN_DO', 'recorded'));
    for (let job = 0; job < jobs.count; job += 1) socket.write(encodePacket('REQ', 'GRAB_JOB_UNIQ'));
    const chunks: Buffer[] = [];
    let packets = 0;
    const decoder = new PacketDecoder({
      onPacket: () => {
        packets += 1;
      },
    });
    for await (const chunk of socket as AsyncIterable<Buffer>) {
      signal.throwIfAborted();
      chunks.push(chunk);
      decoder.decode(chunk);
      if (packets === jobs.count) break;
    }
    await writeFile(file, Buffer.concat(chunks));
  } finally {
    socket.destroy();
    await client.close();
    await server.stop();
  }
}
