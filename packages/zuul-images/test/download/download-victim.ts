/**
 * Downloads over two connections: `download-victim.ts URL DESTINATION STATE-DIRECTORY [COUNT]`. With a count it kills
 * itself at the response that has this number.
 */
import { subscribe } from 'node:diagnostics_channel';
import { downloadArtifact } from '../../src/download/download-artifact.ts';

const [url = '', destination = '', stateDirectory = '', count] = process.argv.slice(2);
let responses = 0;
subscribe('http.client.response.finish', () => {
  responses += 1;
  if (responses === Number(count)) process.kill(process.pid, 'SIGKILL');
});
await downloadArtifact({ url, destination, stateDirectory, connections: 2 });
