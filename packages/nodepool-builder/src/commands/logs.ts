import { once } from 'node:events';
import type { ServerAddress } from '@nodepool-builder/gearman-node';
import { Option } from 'commander';
import { builderLog, type LogName } from '../control/builder-log.ts';
import { printable } from '../printable.ts';
import { SHORTENED_NOTE } from '../web/log-source.ts';
import type { ConfiguredCommand } from './configured-command.ts';
import { CommandError } from './output.ts';
import { untilStopSignal } from './stop-signal.ts';

/** Options of `logs`. */
interface LogsOptions {
  readonly follow?: true;
  readonly upload?: string;
}

/** `logs`: prints the log of a build or of an upload, from whichever builder has it. */
export const LOGS: ConfiguredCommand = {
  name: 'logs',
  description:
    'Prints the log of the build of an image, or of an upload of it, from whichever builder has it. The log comes over ' +
    'Gearman. With --follow, it goes on until the build or the upload has ended.',
  argument: ['<image-id>', 'id of the image, as image-list shows it'],
  options: [
    new Option('-f, --follow', 'wait for more until the build or the upload has ended'),
    new Option('--upload <upload-id>', 'the log of this upload, with the upload-id that image-list shows'),
  ],
  example: 'debian-20161118140211-9f3c --follow',
  ask: async ({ servers }, { follow, upload }: LogsOptions, imageId) => {
    const name = { imageId, ...(upload !== undefined && { uploadId: upload }) };
    await untilStopSignal((signal) => printLog(servers, name, follow === true, signal));
  },
};

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
      throw new CommandError(`no builder has a log of ${what}; ${remedy}`, {
        exitReason: 'not-found',
        cause,
      });
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

/** Waits for a slow reader, so that memory stays flat. */
async function print(text: string): Promise<void> {
  if (!process.stdout.write(text) && !process.stdout.destroyed) await once(process.stdout, 'drain');
}
