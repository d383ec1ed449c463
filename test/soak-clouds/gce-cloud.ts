import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { IMAGE_TAGS } from '@nodepool-builder/image-builder/plugin';
import { GceDouble, type GceRequest } from '../doubles/gce/gce-double.ts';
import { GoogleError } from '../doubles/gce/model.ts';
import type { SoakCloud } from '../soak/soak-cloud.ts';

/** Errors as Google reports them. The request of a lost response is carried out. */
const FAULTS = [
  () => new GoogleError(429, 'rateLimitExceeded', 'Rate Limit Exceeded'),
  () => new GoogleError(500, 'internalError', 'Internal error encountered.'),
  () => new GoogleError(503, 'backendError', 'Backend Error'),
  () => 'lost' as const,
];

/** Opens the Compute Engine and Cloud Storage double. */
export async function gceCloud(faultRate: number): Promise<SoakCloud> {
  const directory = await mkdtemp(join(tmpdir(), 'nodepool-soak-gce-'));
  const [credentials, subject] = [join(directory, 'credentials.json'), join(directory, 'subject')];
  const double = await GceDouble.start({ pendingReads: 1 });
  await writeFile(subject, 'soak');
  await writeFile(credentials, JSON.stringify(double.credentials(subject)));
  /** Imported files by image name, which the double discards. */
  const files = new Map<string, Buffer>();
  let [requests, faults] = [0, 0];
  double.fault = (request) => {
    double.requests.length = 0;
    requests += 1;
    const isFault = Math.random() < faultRate;
    const fault = isFault ? FAULTS[Math.floor(Math.random() * FAULTS.length)]?.() : undefined;
    faults += isFault ? 1 : 0;
    if (!(fault instanceof GoogleError)) keepFile(double, request, files);
    return fault;
  };
  return {
    entry: {
      name: 'gce',
      type: 'gce',
      project: 'ci-project',
      'bucket-name': 'soak',
      'credentials-file': credentials,
      endpoint: double.endpoint,
      'storage-endpoint': double.endpoint,
      'image-type': 'raw',
    },
    images: async () =>
      double.images.map(({ resource, status, isDeleted }) => ({
        externalId: resource.name,
        imageId: imageIdIn(resource.description),
        flaw: status === 'READY' && !isDeleted ? undefined : `${status}${isDeleted ? ', being deleted' : ''}`,
        isSame: async ({ path, size }) => {
          const content = await beginOf(files.get(resource.name) ?? Buffer.alloc(0), size);
          return content.equals(await readFile(path));
        },
      })),
    orphans: async () => [...double.storage.objects.keys()].map((key) => `object ${key} is left`),
    traffic: () => ({ requests, faults }),
    close: async () => {
      await double[Symbol.asyncDispose]();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

function keepFile(
  { storage, images }: GceDouble,
  { operation, input }: GceRequest,
  files: Map<string, Buffer>,
): void {
  if (operation !== 'Images.Insert') return;
  const { name, rawDisk } = input.imageResource as { name: string; rawDisk?: { source?: string } };
  const key = rawDisk?.source?.replace('https://storage.googleapis.com/', '') ?? '';
  const file = storage.objects.get(key)?.bytes;
  // The name may belong to a deleted image.
  if (file !== undefined && !images.some(({ resource }) => resource.name === name)) files.set(name, file);
}

function imageIdIn(description: unknown): string {
  const tags = JSON.parse(String(description)) as Readonly<Record<string, string>>;
  return tags[IMAGE_TAGS.imageId] ?? '';
}

/** Returns the first bytes of `disk.raw` in a file for an import. */
async function beginOf(file: Buffer, size: number): Promise<Buffer> {
  const tar = spawn('tar', ['--extract', '--gzip', '--to-stdout', 'disk.raw'], {
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  const ended = new Promise((resolve) => tar.once('close', resolve));
  tar.stdin.on('error', () => {}).end(file); // tar may exit before it has read everything
  const pieces: Buffer[] = [];
  let length = 0;
  for await (const piece of tar.stdout as AsyncIterable<Buffer>) {
    pieces.push(piece);
    length += piece.length;
    if (length >= size) break;
  }
  tar.kill('SIGKILL');
  await ended;
  return Buffer.concat(pieces).subarray(0, size);
}
