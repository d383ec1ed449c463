/**
 * Runs the AWS double in its own process. Responds to the line `address` with its URL, and `received` with the number
 * of block bytes received since the last such line.
 */
import { createInterface } from 'node:readline';
import { AwsDouble } from '../../doubles/aws/aws-double.ts';

const double = await AwsDouble.start();
const region = double.region();
double.fault = () => {
  double.requests.length = 0; // requests keep their blocks in memory
  return undefined;
};

for await (const line of createInterface(process.stdin)) {
  if (line === 'address') console.log(double.endpoint);
  else {
    console.log(region.receivedBytes);
    region.receivedBytes = 0;
  }
}
await double[Symbol.asyncDispose]();
