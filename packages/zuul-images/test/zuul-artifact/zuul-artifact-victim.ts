/**
 * Builds an image from a job of a Zuul double, and kills itself at the server response with this number:
 * `zuul-artifact-victim.ts DISKIMAGE-AND-SETTINGS-JSON IMAGES-DIR IMAGE-ID COUNT`.
 */
import { subscribe } from 'node:diagnostics_channel';
import { ImageRepository } from '@nodepool-builder/image-builder';
import { NO_SERVICES } from '../../../../test/fixtures/builder-services.ts';
import { ZuulArtifactBuilder } from '../../src/index.ts';

const [entry = '', directory = '', imageId = '', count] = process.argv.slice(2);
let responses = 0;
subscribe('http.client.response.finish', () => {
  responses += 1;
  if (responses === Number(count)) process.kill(process.pid, 'SIGKILL');
});
const repository = await ImageRepository.open(directory);
const [diskimage, settings] = JSON.parse(entry) as ConstructorParameters<typeof ZuulArtifactBuilder>;
await new ZuulArtifactBuilder(diskimage, settings, NO_SERVICES).build({ imageId, repository });
