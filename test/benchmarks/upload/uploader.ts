/**
 * Puts a file to a server, again and again: takes lines of `PATH DIGEST...` and answers each with the seconds that it
 * took and the most bytes of memory that this process ever had.
 */
import { once } from 'node:events';
import { Agent, type ClientRequest, type IncomingMessage, request } from 'node:http';
import { createInterface } from 'node:readline';
import { openUploadSource } from '@nodepool-builder/image-builder';
import { type DigestName, HashThreads } from '@nodepool-builder/image-builder/module-kit';
import { peakMemory } from '../peak-memory.ts';

const [address = ''] = process.argv.slice(2);
const agent = new Agent({ keepAlive: true });
const threads = new HashThreads();

for await (const order of createInterface(process.stdin)) {
  const [path = '', ...digests] = order.split(' ');
  const begin = performance.now();
  await upload(path, digests as DigestName[]);
  console.log((performance.now() - begin) / 1000, await peakMemory(process.pid));
}

async function upload(path: string, digests: readonly DigestName[]): Promise<void> {
  const source = await openUploadSource(path, { digests, threads });
  const outgoing = request(`${address}/v2/images/image/file`, {
    method: 'PUT',
    agent,
    headers: { 'content-length': source.size },
  });
  const answered = once(outgoing, 'response') as Promise<[IncomingMessage]>;
  for await (const piece of source.pieces()) await written(outgoing, piece);
  outgoing.end();
  const [answer] = await answered;
  if (answer.statusCode !== 204) throw new Error(`the server answers ${answer.statusCode}`);
  answer.resume();
  await source.digests;
  await source.close();
}

async function written(outgoing: ClientRequest, piece: Buffer): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  outgoing.write(piece, (error) => (error ? reject(error) : resolve()));
  await promise;
}
