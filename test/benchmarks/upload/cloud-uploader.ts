/**
 * Uploads raw files to the provider in a configuration: `cloud-uploader.ts <nodepool.yaml> <directory for records>`.
 * Reads lines of `PATH IMAGE-ID`, and responds to each with the duration in seconds and the peak memory of this process
 * in bytes. A line `delete` deletes all images.
 */
import { stat } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { loadConfiguration } from 'nodepool-builder';
import { peakMemory } from '../peak-memory.ts';

const [file = '', directory = ''] = process.argv.slice(2);
const { configuration } = await loadConfiguration(file);
const [configured] = configuration.providers;
const provider = configured?.module.images?.open(configured.entry, {
  formats: ['raw'],
  directory,
  prepared: () => {
    const { error, value } = configured.prepared;
    return error ? Promise.reject(error) : Promise.resolve(value);
  },
  logger: { debug: ignore, info: ignore, warn: console.warn, error: console.error },
  onTask: ignore,
});
if (provider === undefined) throw new Error(`${file} has no provider with images`);

for await (const line of createInterface(process.stdin)) {
  const [path = '', imageId = ''] = line.split(' ');
  const begin = performance.now();
  if (path === 'delete') {
    for (const { externalId } of await provider.list()) await provider.delete(externalId);
  } else {
    const { size } = await stat(path);
    const request = { uploadId: imageId, imageId, imageName: 'bench', builtAt: new Date() };
    await provider.upload({ ...request, file: { format: 'raw', path, size } });
  }
  console.log((performance.now() - begin) / 1000, await peakMemory(process.pid));
}

function ignore(): void {}
