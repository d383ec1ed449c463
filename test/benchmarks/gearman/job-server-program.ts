/**
 * Runs this project's job server in its own process. Standard input contains requests: `port`; `stall` for the maximum
 * stalls of the event loop since the last such request, in the order of `Stalls`; `memory` for the resident set and,
 * after a garbage collection, the objects and buffers in use, in bytes. The program exits at the end of its input.
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
    // The first request starts the watch, which would take time in other benchmarks.
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
