import { readFile } from 'node:fs/promises';
import type { Diagnostic, SettingsOf, SettingsSchema } from '@nodepool-builder/image-builder';
import { TEXT } from '../yaml/schema-node.ts';

/** Kinds of events that a receiver can select. */
export const EVENTS = [
  'build-succeeded',
  'build-recovered',
  'build-failed',
  'build-cancelled',
  'upload-succeeded',
  'upload-recovered',
  'upload-failed',
  'upload-cancelled',
  'image-too-old',
] as const;

/** A kind of event. */
export type EventKind = (typeof EVENTS)[number];

/** An entry of `notifications`. */
const NOTIFICATION_SCHEMA = {
  type: 'object',
  required: ['name'],
  additionalProperties: false,
  properties: {
    name: { ...TEXT, description: 'Name of the receiver, for the log and `notify-test`.' },
    url: {
      ...TEXT,
      description:
        'URL of a webhook that receives each event by POST. If the URL is a secret, the absolute path of a file that ' +
        'contains it.',
    },
    'secret-file': {
      ...TEXT,
      format: 'path',
      description:
        'File with the secret that signs requests (Standard Webhooks); in `whsec_…` the part after the prefix is base64. ' +
        'Default: requests are not signed.',
    },
    command: {
      type: 'array',
      items: TEXT,
      minItems: 1,
      format: 'program',
      description: 'Command that gets each event as JSON on its standard input.',
    },
    events: {
      type: 'array',
      items: { enum: EVENTS },
      description:
        'Events to send. Default: all except `build-succeeded` and `upload-succeeded`, which include recoveries.',
    },
    'max-age': {
      type: 'number',
      exclusiveMinimum: 0,
      default: 172_800,
      description: "Age in seconds at which a provider's newest image is reported as `image-too-old`.",
    },
  },
} as const satisfies SettingsSchema;

/** Schema of `notifications`. */
export const NOTIFICATIONS = {
  type: ['array', 'null'],
  items: NOTIFICATION_SCHEMA,
  description: 'Webhooks and commands that are notified of builds and uploads.',
} as const satisfies SettingsSchema;

/** A receiver of events. */
export type NotificationSettings = SettingsOf<typeof NOTIFICATION_SCHEMA>;

/** Reports entries without exactly one receiver, invalid URLs, and files that cannot be read. */
export async function notificationDiagnostics(
  notifications: readonly NotificationSettings[],
): Promise<readonly Diagnostic[]> {
  const diagnostics: Diagnostic[] = [];
  for (const [index, entry] of notifications.entries()) {
    const { name, url, command, 'secret-file': secretFile } = entry;
    const report = (key: string, reason: string, remedy: string, severity?: 'warning'): void => {
      const pointer = `/notifications/${index}${key}`;
      diagnostics.push({ pointer, reason, remedy, ...(severity && { severity }) });
    };
    if (notifications.findIndex((other) => other.name === name) < index)
      report('/name', `"${name}" is used by another entry`, 'rename one of the two');
    if ((url === undefined) === (command === undefined))
      report('', `has ${url === undefined ? 'no receiver' : 'url and command'}`, 'set one of url, command');
    // The message omits the value, which may contain a secret.
    if (url !== undefined && !url.startsWith('/') && !isWebhookUrl(url))
      report('/url', 'is not an HTTP URL', 'write it as https://HOST/PATH');
    if (command !== undefined && secretFile !== undefined)
      report('/secret-file', 'signs requests, but a command receives no request', 'remove it');
    for (const [key, path] of Object.entries({ url, 'secret-file': secretFile })) {
      if (path?.startsWith('/') !== true) continue;
      const error = await readFile(path).catch((reason: unknown) => reason);
      if (!(error instanceof Error)) continue;
      const remedy = 'name a file that this user may read; until then no event is delivered';
      report(`/${key}`, `cannot be read: ${error.message}`, remedy, 'warning');
    }
  }
  return diagnostics;
}

/** Returns whether a text is the URL of a webhook. */
export function isWebhookUrl(text: string): boolean {
  return ['http:', 'https:'].includes(URL.parse(text)?.protocol ?? '');
}
