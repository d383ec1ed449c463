/**
 * Uploads a file to a server repeatedly. Reads lines of `PATH` (or `PATH known`, for a file with known checksums), and
 * responds to each with the duration in seconds and the peak memory of this process in bytes.
 */
import { once } from 'node:events';
import { Agent, type ClientRequest, type IncomingMessage, request } from 'node:http';
import { createInterface } from 'node:readline';
import { type Checksums, HashedReader } from '@nodepool-builder/image-builder';
import { peakMemory } from '../peak-memory.ts';

const [address = ''] = process.argv.slice(2);
const agent = new Agent({ keepAlive: true });

for await (const order of createInterface(process.stdin)) {
  const [path = '', known] = order.split(' ');
  const begin = performance.now();
  await upload(path, known === undefined ? undefined : { md5: '', sha256: '' });
  console.log((performance.now() - begin) / 1000, await peakMemory(process.pid));
}

async function upload(path: string, checksums: Checksums | undefined): Promise<void> {
  const reader = await HashedReader.open(path, { checksums });
  const outgoing = request(`${address}/v2/images/image/file`, {
    method: 'PUT',
    agent,
    headers: { 'content-length': reader.size },
  });
  const responded = once(outgoing, 'response') as Promise<[IncomingMessage]>;
  for await (const piece of reader.pieces()) await written(outgoing, piece);
  outgoing.end();
  const [response] = await responded;
  if (response.statusCode !== 204) throw new Error(`the server responds with ${response.statusCode}`);
  response.resume();
  await reader.checksums;
  await reader.close();
}

async function written(outgoing: ClientRequest, piece: Buffer): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  outgoing.write(piece, (error) => (error ? reject(error) : resolve()));
  await promise;
}
