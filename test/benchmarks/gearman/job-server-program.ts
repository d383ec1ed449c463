/**
 * This project's job server, in a process of its own. Orders come as lines on standard input: `port`, `stall` for the longest
 * stalls of its event loop since the last such order, as the numbers of `Stalls`, and `memory` for its resident set and,
 * after a garbage collection, its objects and buffers in use, in bytes. It ends with its input.
 */
import { createInterface } from 'node:readline';
import { JobServer } from '@nodepool-builder/gearman-node';
import { memoryInUse } from '../../../packages/gearman-node/test/fixtures/memory-in-use.ts';
import { StallWatch } from './stall-watch.ts';

const server = new JobServer();
const { port } = await server.listen(0);
let watch: StallWatch | undefined;
for await (const order of createInterface(process.stdin)) {
  if (order === 'stall') {
    // The first order starts the watch: it would cost time in other benchmarks.
    watch ??= new StallWatch();
    const { processor, clock, garbage } = watch.take();
    console.log(`${processor} ${clock} ${garbage}`);
  } else if (order === 'memory') {
    console.log(`${process.memoryUsage.rss()} ${memoryInUse()}`);
  } else {
    console.log(port);
  }
}
watch?.close();
await server.close();
