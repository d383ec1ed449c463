import { readFile } from 'node:fs/promises';
import type { Diagnostic, SettingsOf } from '@nodepool-builder/image-builder';
import type { SettingsSchema } from '@nodepool-builder/image-builder/module-kit';
import { TEXT } from '../yaml/schema-node.ts';
import { EVENTS } from './event-kinds.ts';

const FILE = { ...TEXT, format: 'path' } as const;
const NAMES = { type: 'array', items: TEXT } as const;

/** An entry of `notifications`. */
const NOTIFICATION_SCHEMA = {
  type: 'object',
  required: ['name'],
  additionalProperties: false,
  properties: {
    name: { ...TEXT, description: 'Name of the receiver, for the log and `notify-test`.' },
    url: { ...TEXT, description: 'Webhook: URL that each event is sent to by POST.' },
    'url-file': { ...FILE, description: 'File with that URL, if the URL is a secret.' },
    'secret-file': {
      ...FILE,
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
        'Events to send. Default: all but `build-succeeded` and `upload-succeeded`, which include recoveries.',
    },
    diskimages: { ...NAMES, description: 'Only events of these disk images. Default: all.' },
    providers: {
      ...NAMES,
      description:
        'Only events of uploads to these providers. Default: all. Events of builds are always sent.',
    },
    'max-age': {
      type: 'number',
      exclusiveMinimum: 0,
      default: 172_800,
      description: 'Age in seconds at which the newest image in a provider is `image-too-old`.',
    },
    timeout: {
      type: 'number',
      exclusiveMinimum: 0,
      maximum: 3600,
      default: 30,
      description: 'Time limit of a request, or of the command, in seconds.',
    },
    'retry-timeout': {
      type: 'number',
      minimum: 0,
      default: 3600,
      description: 'Seconds, from the event, during which a failed delivery is retried.',
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

const PLACES = ['url', 'url-file', 'command'] as const;

/** Reports entries without exactly one receiver, invalid URLs, and files that cannot be read. */
export async function notificationDiagnostics({
  general,
}: {
  readonly general: { readonly notifications: readonly NotificationSettings[] };
}): Promise<readonly Diagnostic[]> {
  const found = general.notifications.map(async (entry, index) => {
    const pointer = `/notifications/${index}`;
    const diagnostics: Diagnostic[] = [];
    if (general.notifications.findIndex(({ name }) => name === entry.name) < index) {
      const reason = `"${entry.name}" is used by another entry`;
      diagnostics.push({ pointer: `${pointer}/name`, reason, remedy: 'rename one of the two' });
    }
    const places = PLACES.filter((key) => entry[key] !== undefined);
    if (places.length !== 1) {
      const reason = places.length === 0 ? 'has no receiver' : `has ${places.join(' and ')}`;
      diagnostics.push({ pointer, reason, remedy: `set one of ${PLACES.join(', ')}` });
    }
    if (entry.url !== undefined && !isWebhookUrl(entry.url)) {
      // The message omits the value, which may contain a secret.
      const remedy = 'write it as https://HOST/PATH';
      diagnostics.push({ pointer: `${pointer}/url`, reason: 'is not an HTTP URL', remedy });
    }
    if (entry.command !== undefined && entry['secret-file'] !== undefined) {
      const reason = 'signs requests, but a command receives no request';
      diagnostics.push({ pointer: `${pointer}/secret-file`, reason, remedy: 'remove it' });
    }
    for (const key of ['url-file', 'secret-file'] as const) {
      const error = await readFile(entry[key] ?? '/dev/null').catch((reason: unknown) => reason);
      if (!(error instanceof Error)) continue;
      const remedy = 'name a file that this user may read; until then no event is delivered';
      const reason = `cannot be read: ${error.message}`;
      diagnostics.push({ pointer: `${pointer}/${key}`, severity: 'warning', reason, remedy });
    }
    return diagnostics;
  });
  return (await Promise.all(found)).flat();
}

/** Returns whether a text is the URL of a webhook. */
export function isWebhookUrl(text: string): boolean {
  return ['http:', 'https:'].includes(URL.parse(text)?.protocol ?? '');
}
