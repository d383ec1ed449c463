/**
 * Smallest table of functions or jobs: a plain Map, filled in slices as in the job server. Each line of standard
 * input contains a number of records. The response contains the maximum stalls, in the order of `Stalls`. The program
 * exits at the end of its input.
 */
import { createInterface } from 'node:readline';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { StallWatch } from './stall-watch.ts';

/** Records per slice, as in the job server. */
const SLICE = 512;

const watch = new StallWatch();
for await (const order of createInterface(process.stdin)) {
  watch.take();
  const table = new Map<string, object>();
  for (let index = 0; index < Number(order); index += 1) {
    table.set(`f${index}`, { name: `f${index}`, workers: new Set([index]), jobs: [] });
    if (index % SLICE === 0) await nextTurn();
  }
  await nextTurn(); // for the timer and the report of the last garbage collection
  await nextTurn();
  const { processor, clock, garbage } = watch.take();
  console.log(`${processor} ${clock} ${garbage}`);
}
watch.close();
