/**
 * Downloads over two connections: `download-victim.ts URL DIRECTORY [COUNT]`. With a count, it kills itself at the
 * response with this number. Prints the path of the file.
 */
import { subscribe } from 'node:diagnostics_channel';
import { downloadArtifact } from '../../src/download/download-artifact.ts';
import { LOCAL } from './download-fixture.ts';

const [url = '', directory = '', count] = process.argv.slice(2);
let responses = 0;
subscribe('http.client.response.finish', () => {
  responses += 1;
  if (responses === Number(count)) process.kill(process.pid, 'SIGKILL');
});
const request = { url, access: LOCAL, directory, maxSize: 2 ** 38, leaveFree: 0 };
const { path } = await downloadArtifact(request, { connections: 2 });
console.log(path);
