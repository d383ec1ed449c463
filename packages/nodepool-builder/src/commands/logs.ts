import { once } from 'node:events';
import type { ServerAddress } from '@nodepool-builder/gearman-node';
import type { StateStore } from '@nodepool-builder/image-manager';
import { Option } from 'commander';
import type { Configuration } from '../configuration/configuration.ts';
import { logFunction } from '../protocol/log-part.ts';
import { askServers } from '../site/ask-servers.ts';
import { builderLog, type LogName } from '../site/builder-log.ts';
import { readSite } from '../site/builder-status.ts';
import { buildRecord, uploadRecord } from '../site/format-records.ts';
import { SHORTENED_NOTE } from '../site/log-source.ts';
import { withStore } from '../site/state-view.ts';
import { CommandError } from '../terms/command-error.ts';
import { printable } from '../terms/printable.ts';
import { type ConfiguredSite, configured } from './configured-command.ts';
import { readState } from './manager-work.ts';
import { untilStopSignal } from './stop-signal.ts';

/** Options of `logs`. */
interface LogsOptions {
  readonly follow?: true;
  readonly upload?: string;
}

/** `logs`: prints the log of a build or of an upload, from the builder that has it. */
export const register = configured({
  name: 'logs',
  description:
    'Prints the log of the build of an image, or of an upload of it, from the builder that has it. The log is sent over ' +
    'Gearman. With --follow, it continues until the build or the upload has ended. The name of a disk image stands for ' +
    'its running build, or else its newest one.',
  argument: ['<id>', 'id of the image or the upload, as image-list shows it, or name of a disk image'],
  options: [
    new Option('-f, --follow', 'wait for more lines until the build or the upload has ended'),
    new Option('--upload <upload-id>', 'the log of this upload, with the upload-id that image-list shows'),
  ],
  example: 'debian-20161118140211-9f3c --follow',
  run: async (site, { follow, upload }: LogsOptions, id) => {
    try {
      const servers = await site.servers();
      await untilStopSignal(async (signal) => {
        const name = await findLog(site, id, upload, signal);
        await printLog(servers, name, follow === true, signal);
      });
    } catch (error) {
      const isMissing = error instanceof CommandError && error.exitReason === 'not-found';
      const explanation = isMissing ? await explain(await site.configuration(), upload ?? id) : undefined;
      if (explanation === undefined) throw error;
      throw new CommandError(explanation, 'not-found');
    }
  },
});

/**
 * End of the ids that commands and managers give to the images of a disk image: a time or a number, and random
 * characters.
 */
const END_OF_ID = /^-\d{10,14}-[\da-z]{4,8}$/;

/**
 * Finds out which log is meant.
 *
 * @param id of a build or an upload, or the name of a disk image, which stands for its running or its newest build
 * @param uploadId of an upload of that build
 */
async function findLog(
  site: Pick<ConfiguredSite, 'configuration' | 'servers'>,
  id: string,
  uploadId: string | undefined,
  signal: AbortSignal,
): Promise<LogName> {
  const servers = await site.servers();
  const functions = await askServers(servers, (admin) => admin.status(), signal);
  const prefix = logFunction('');
  const logged = functions
    .filter(({ name, availableWorkers }) => name.startsWith(prefix) && availableWorkers > 0)
    .map(({ name }) => name.slice(prefix.length));
  if (logged.includes(id)) return { imageId: id, ...(uploadId !== undefined && { uploadId }) };
  const jobs = (await readSite(servers, signal)).builders.flatMap((builder) => builder.jobs);
  const building = jobs.find((job) => job.kind === 'build' && job.diskimage === id)?.['image-id'];
  const built = logged.filter((one) => one.startsWith(id) && END_OF_ID.test(one.slice(id.length))).toSorted();
  const imageId = building ?? built.at(-1);
  if (imageId !== undefined && uploadId === undefined) {
    console.error(`log of build ${imageId}:`);
    return { imageId };
  }
  const wanted = uploadId ?? id;
  const running = jobs.find((job) => job['upload-id'] === wanted)?.['image-id'];
  const findRecord = async (store: StateStore): Promise<string | undefined> =>
    (await store.read()).uploads.get(wanted)?.imageId;
  const uploaded = running ?? (await withStore(await site.configuration(), findRecord, () => undefined));
  if (uploaded !== undefined) return { imageId: uploaded, uploadId: wanted };
  return { imageId: imageId ?? id, ...(uploadId !== undefined && { uploadId }) };
}

/** Explains from the manager's records why no builder has a log of a build or an upload; undefined if they do not. */
async function explain(configuration: Configuration, id: string): Promise<string | undefined> {
  const read = (store: StateStore) => readState(configuration, store);
  const records = await withStore(configuration, read, () => undefined);
  if (records === undefined) return undefined;
  const { builds, uploads, work } = records;
  const upload = uploads.get(id);
  const build =
    builds.get(id) ??
    [...builds.values()].findLast(
      ({ state, diskimage }) => /^(?:building|ready)$/.test(state) && diskimage === id,
    );
  const record = upload ? uploadRecord(upload, work) : build && buildRecord(build, work);
  const recordId = upload?.id ?? build?.id;
  if (record?.state === 'queued')
    return `${recordId} is queued, waiting for ${record.waiting}; it has no log before a builder starts it`;
  return record?.state === 'ready' && record.error !== null ? `${recordId}: ${record.error}` : undefined;
}

/** @throws CommandError `not-found`; GearmanError */
async function printLog(
  servers: readonly ServerAddress[],
  name: LogName,
  follow: boolean,
  signal: AbortSignal,
): Promise<void> {
  const read = builderLog(servers, name, follow ? undefined : 0);
  let decoder = new TextDecoder();
  for (let offset = 0; ; ) {
    const part = await read(offset, signal).catch((cause: unknown) => {
      const isMissing = cause instanceof CommandError && cause.exitReason === 'not-found';
      if (!isMissing) throw cause;
      const remedy =
        'compare the id with "image-list" and "dib-image-list"; build-log-retention limits how many are kept';
      const what = name.uploadId === undefined ? `image ${name.imageId}` : `upload ${name.uploadId}`;
      throw new CommandError(`no builder has a log of ${what}; ${remedy}`, 'not-found', { cause });
    });
    if (part.offset < offset) {
      decoder = new TextDecoder();
      await print(`${SHORTENED_NOTE}\n`);
    }
    await print(printable(decoder.decode(part.data, { stream: true })));
    offset = part.offset + part.data.length;
    if (part.isComplete || (!follow && part.data.length === 0) || process.stdout.destroyed) return;
  }
}

/** Waits for a slow reader, so that memory does not grow. */
async function print(text: string): Promise<void> {
  if (!process.stdout.write(text) && !process.stdout.destroyed) await once(process.stdout, 'drain');
}
