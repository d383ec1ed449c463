/**
 * Runs the Azure double in its own process. Responds to the line `address` with its URL, `pages` with the URL of the
 * page blobs, `environment` with the variables for its tokens, and `received` with the number of page bytes received
 * since the last such line.
 */
import { createInterface } from 'node:readline';
import { ArmDouble } from '../../doubles/azure/arm-double.ts';
import { PageSink } from './page-sink.ts';

const sink = new PageSink();
await sink.start();
const double = await ArmDouble.start(sink, { polls: 0 });

const replies: Readonly<Record<string, () => string>> = {
  address: () => double.endpoint,
  pages: () => sink.url,
  environment: () => JSON.stringify(double.environment),
  received: () => {
    const { received } = sink;
    sink.received = 0;
    return String(received);
  },
};

for await (const line of createInterface(process.stdin)) console.log(replies[line]?.());
sink.close();
await double[Symbol.asyncDispose]();
