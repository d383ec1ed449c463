/** Runs nodepool-builder, and also writes the stalls of its event loop to standard error. */
import { main } from 'nodepool-builder';
import { StallWatch } from './gearman/stall-watch.ts';

/** Milliseconds between two lines. */
const INTERVAL = 100;

const watch = new StallWatch();
const timer = setInterval(() => {
  const { processor, clock, garbage } = watch.take();
  process.stderr.write(`stall ${processor} ${clock} ${garbage}\n`);
}, INTERVAL);
process.exitCode = await main(process.argv.slice(2));
clearInterval(timer);
watch.close();
