import { setTimeout as delay } from 'node:timers/promises';
import type { Logger, SettingsOf } from '@nodepool-builder/image-builder';
import type {
  CloudImageConfiguration,
  Configuration,
  ProviderConfiguration,
} from '../configuration/configuration.ts';
import { findLatest, noImage } from '../site/choose-image.ts';
import { Providers } from '../site/providers.ts';
import { errorLine } from '../terms/command-error.ts';
import { recordSchema, TEXT, TEXT_OR_NULL, TIME_OR_NULL } from '../terms/record-schema.ts';

/** Schema of a {@link CloudImageRecord}. */
export const CLOUD_IMAGE_RECORD = recordSchema({
  provider: { ...TEXT, description: '`providers[].name`.' },
  name: { ...TEXT, description: 'Name in `cloud-images`.' },
  'external-id': {
    ...TEXT_OR_NULL,
    description: "The provider's id of the image that is currently chosen; null if none is known.",
  },
  'external-name': { ...TEXT_OR_NULL, description: 'Its name in the provider; null if it is unknown.' },
  built: { ...TIME_OR_NULL, description: 'Time of its build; null if it is unknown.' },
  since: {
    ...TIME_OR_NULL,
    description:
      'Time at which this process saw the choice change; for its first choice, the creation time of the image in the ' +
      'provider. Null for a fixed id.',
  },
  error: {
    ...TEXT_OR_NULL,
    description: 'Error of the last attempt to choose an image; null if it succeeded.',
  },
});

/** An image that is chosen by its id or by filters. */
export type CloudImageRecord = SettingsOf<typeof CLOUD_IMAGE_RECORD>;

/** Timeout for choosing one image, in milliseconds. */
const TIMEOUT = 60_000;

/** Settings of {@link CloudImageWatch}. */
export interface CloudImageWatchOptions {
  readonly configuration: Pick<Configuration, 'providers'>;
  readonly logger: Logger;
  /** Pause between two checks, in milliseconds. Default 60,000. */
  readonly interval?: number;
}

/** An image in a provider that the configuration chooses. */
interface Choice {
  readonly configuration: ProviderConfiguration;
  readonly image: CloudImageConfiguration;
}

/** Tracks which images the filters of a configuration choose, and since when. */
export class CloudImageWatch {
  readonly #options: CloudImageWatchOptions;
  readonly #providers: Providers;
  #stop = new AbortController();
  #records: ReadonlyMap<string, CloudImageRecord> = new Map();
  #watching: Promise<void>;

  constructor(options: CloudImageWatchOptions) {
    this.#options = options;
    this.#providers = new Providers({ logger: () => options.logger });
    this.#watching = this.#watch(options.configuration, this.#stop.signal);
  }

  /** The last result of each choice, in the order of the configuration. */
  get records(): readonly CloudImageRecord[] {
    return [...this.#records.values()];
  }

  /** Tracks another configuration. Choices that it shares keep their time. */
  reload(configuration: Pick<Configuration, 'providers'>): void {
    this.#stop.abort(new Error('the configuration was reloaded'));
    this.#stop = new AbortController();
    const { signal } = this.#stop;
    this.#watching = this.#watching.then(() => this.#watch(configuration, signal));
  }

  async close(): Promise<void> {
    this.#stop.abort(new Error('the status page is being closed'));
    await this.#watching;
    this.#providers[Symbol.dispose]();
  }

  /** Checks at intervals until the signal aborts. It does not fail. */
  async #watch({ providers }: Pick<Configuration, 'providers'>, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    this.#providers.configure({ providers, instanceProviders: [] })();
    const choices = providers.flatMap(choicesOf);
    this.#records = new Map(
      choices.map((choice) => [keyOf(choice), this.#records.get(keyOf(choice)) ?? unknownImage(choice)]),
    );
    if (choices.every(isFixed)) return;
    const byProvider = [...Map.groupBy(choices, ({ configuration }) => configuration.name).values()];
    while (!signal.aborted) {
      await Promise.all(byProvider.map((own) => this.#look(own, signal)));
      await delay(this.#options.interval ?? 60_000, undefined, { signal, ref: false }).catch(() => {});
    }
  }

  /** Queries one provider for the images of its filters, one after the other. */
  async #look(choices: readonly Choice[], signal: AbortSignal): Promise<void> {
    for (const choice of choices.filter((one) => !isFixed(one))) {
      const key = keyOf(choice);
      const record = await this.#choose(choice, this.#records.get(key) ?? unknownImage(choice), signal);
      if (signal.aborted) return;
      this.#records = new Map(this.#records).set(key, record);
    }
  }

  async #choose(
    { configuration: { name }, image }: Choice,
    before: CloudImageRecord,
    signal: AbortSignal,
  ): Promise<CloudImageRecord> {
    const { logger } = this.#options;
    const subject = `provider ${name}, cloud-images: ${image.name}`;
    const look = async (): Promise<Partial<CloudImageRecord>> => {
      const { provider } = this.#providers.get(name) ?? {};
      if (provider === undefined) return {};
      const timeout = AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT)]);
      const found = await findLatest(provider, image.filters, { signal: timeout });
      if (found.latest === undefined) return { ...NO_IMAGE, error: noImage(name, found) };
      const { externalId, name: externalName, createdAt, builtAt } = found.latest;
      if (before['external-id'] === externalId) return { error: null };
      const isFirst = before['external-id'] === null;
      if (!isFirst) logger.info(`${subject} is now image ${externalId}`);
      return {
        'external-id': externalId,
        'external-name': externalName,
        built: builtAt?.toISOString() ?? null,
        since: isFirst ? createdAt.toISOString() : new Date().toISOString(),
        error: null,
      };
    };
    const changes = await look().catch((error: unknown) =>
      signal.aborted ? {} : { error: errorLine(error) },
    );
    const after = { ...before, ...changes };
    if (after.error !== null && after.error !== before.error) logger.warn(`${subject}: ${after.error}`);
    return after;
  }
}

const NO_IMAGE = { 'external-id': null, 'external-name': null, built: null, since: null } as const;

function choicesOf(configuration: ProviderConfiguration): readonly Choice[] {
  return configuration.cloudImages.map((image) => ({ configuration, image }));
}

/** Identifies a choice and its conditions. Other conditions make another choice. */
function keyOf({ configuration, image }: Choice): string {
  return JSON.stringify([configuration.name, image]);
}

/** Returns whether an image needs no check, because its id is fixed or nothing can be chosen. */
function isFixed({ image }: Choice): boolean {
  return image.imageId !== undefined || image.reason !== undefined;
}

function unknownImage({ configuration, image }: Choice): CloudImageRecord {
  const { name, imageId = null, reason = null } = image;
  return { provider: configuration.name, name, ...NO_IMAGE, 'external-id': imageId, error: reason };
}
