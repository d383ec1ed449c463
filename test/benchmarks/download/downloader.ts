/**
 * Downloads repeatedly. Reads lines of `URL DESTINATION CONNECTIONS`, and responds to each with the duration in seconds
 * and the peak memory of this process in bytes.
 */
import { rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { AddressGuard } from '../../../packages/zuul-images/src/download/address-guard.ts';
import { downloadArtifact } from '../../../packages/zuul-images/src/download/download-artifact.ts';
import { peakMemory } from '../peak-memory.ts';

for await (const order of createInterface(process.stdin)) {
  const [url = '', destination = '', connections] = order.split(' ');
  const directory = join(dirname(destination), 'partial');
  const access = { guard: new AddressGuard({ configuredUrls: [url] }) };
  const begin = performance.now();
  const request = { url, access, directory, maxSize: 2 ** 38, leaveFree: 0 };
  const { path } = await downloadArtifact(request, { connections: Number(connections) });
  await rename(path, destination);
  await rm(directory, { recursive: true });
  console.log((performance.now() - begin) / 1000, await peakMemory(process.pid));
}
