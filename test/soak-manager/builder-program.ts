/**
 * A builder that is real only on its Gearman side: `builder-program.ts <settings> <images-dir>`. It builds files of a
 * few bytes, and uploads them to the double.
 */
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type JobHandler, Worker, type WorkerJob, WorkFailError } from '@nodepool-builder/gearman-node';
import { DoubleProvider } from './cloud-client.ts';
import { diskimageNames, type SoakSettings } from './soak-settings.ts';

/** Maximum duration of a build, in milliseconds. */
const BUILD_TIME = 100;

const [settingsFile, directory] = process.argv.slice(2) as [string, string];
const settings = JSON.parse(await readFile(settingsFile, 'utf8')) as SoakSettings;
await mkdir(directory, { recursive: true });
const images = new Set(await readdir(directory));
const servers = [{ host: '127.0.0.1', port: settings.port }];
const builds = new Worker({ servers, clientId: 'build', concurrency: 4 });
const uploads = new Worker({ servers, clientId: 'upload', concurrency: 8 });

function offer(): void {
  const functions = [...images].flatMap((id): [string, JobHandler][] => [
    [`image-upload:${id}`, upload],
    [`image-delete:${id}`, remove],
  ]);
  uploads.setFunctions(new Map(functions));
}

async function build(job: WorkerJob): Promise<string> {
  const { 'image-id': id } = JSON.parse(job.payload.toString('utf8')) as { 'image-id': string };
  await delay(Math.random() * BUILD_TIME);
  failNowAndThen();
  await writeFile(join(directory, id), id);
  images.add(id);
  offer();
  await uploads.registered();
  return JSON.stringify({ 'image-id': id });
}

async function upload(job: WorkerJob): Promise<string> {
  const { provider, 'image-name': imageName } = JSON.parse(job.payload.toString('utf8')) as {
    provider: string;
    'image-name': string;
  };
  const imageId = subjectOf(job);
  if (!images.has(imageId)) throw new WorkFailError(`image ${imageId} is missing`);
  const cloud = new DoubleProvider(provider, settings.cloud);
  const file = { format: 'raw', path: join(directory, imageId), size: 1 } as const;
  const { externalId } = await cloud.upload({ uploadId: job.unique, imageId, imageName, file });
  return JSON.stringify({ 'external-id': externalId });
}

async function remove(job: WorkerJob): Promise<void> {
  const id = subjectOf(job);
  failNowAndThen();
  await rm(join(directory, id), { force: true });
  images.delete(id);
  offer(); // the worker deregisters the function once the job has its result
}

function subjectOf(job: WorkerJob): string {
  return job.function.slice(job.function.indexOf(':') + 1);
}

function failNowAndThen(): void {
  if (Math.random() < settings.faultRate) throw new WorkFailError('the soak injected a fault');
}

builds.setFunctions(new Map(diskimageNames(settings).map((name) => [`image-build:${name}`, build])));
offer();
await Promise.all([builds.registered(), uploads.registered()]);
console.log('at work');
