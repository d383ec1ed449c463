/**
 * This project's job server, in a process of its own. Orders come as lines on standard input: `port`, and `stall` for the
 * longest stall of its event loop since the last such order, in milliseconds: by processor time, and by the clock. The
 * clock includes the time in which other programs had the processor. It ends with its input.
 */
import { createInterface } from 'node:readline';
import { JobServer } from '@nodepool-builder/gearman-node';

const server = new JobServer();
const { port } = await server.listen(0);
let timer: NodeJS.Timeout | undefined;
let [byProcessor, byClock] = [0, 0];
for await (const order of createInterface(process.stdin)) {
  if (order === 'stall') {
    // The first order starts the timer: it would cost time in other benchmarks.
    timer ??= watchStalls();
    console.log(`${byProcessor} ${byClock}`);
    [byProcessor, byClock] = [0, 0];
  } else {
    console.log(port);
  }
}
clearInterval(timer);
await server.close();

/** A timer of 1 ms, which measures the time between its calls. */
function watchStalls(): NodeJS.Timeout {
  let [processor, clock] = [processorTime(), performance.now()];
  return setInterval(() => {
    const [processorNow, now] = [processorTime(), performance.now()];
    byProcessor = Math.max(byProcessor, processorNow - processor);
    byClock = Math.max(byClock, now - clock - 1);
    [processor, clock] = [processorNow, now];
  }, 1);
}

/** Milliseconds that this thread has used. */
function processorTime(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
