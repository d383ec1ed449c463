/**
 * Downloads again and again: takes lines of `URL DESTINATION CONNECTIONS` and answers each with the seconds that it
 * took and the most bytes of memory that this process ever had.
 */
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { downloadArtifact } from '../../../packages/zuul-images/src/download/download-artifact.ts';
import { peakMemory } from '../peak-memory.ts';

for await (const order of createInterface(process.stdin)) {
  const [url = '', destination = '', connections] = order.split(' ');
  const stateDirectory = join(dirname(destination), 'state');
  const begin = performance.now();
  await downloadArtifact({ url, destination, stateDirectory, connections: Number(connections) });
  console.log((performance.now() - begin) / 1000, await peakMemory(process.pid));
}
