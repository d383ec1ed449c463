import type { Logger } from '@nodepool-builder/image-builder';
import type { Configuration } from '../configuration/configuration.ts';
import { formatFault } from '../configuration/fault.ts';
import { type LoadedConfiguration, loadConfiguration } from '../configuration/load.ts';
import type { Modules } from '../modules.ts';
import { FileWatch } from './watch-files.ts';

/** Settings of {@link ConfigurationReload}. */
export interface ConfigurationReloadOptions {
  /** The file of `-c`. */
  readonly file: string;
  /** The file of `-s`. */
  readonly secure?: string | undefined;
  readonly modules: Modules;
  readonly logger: Logger;
  /** Puts a configuration in force. */
  readonly apply: (configuration: Configuration) => void;
}

/**
 * Reads the configuration again when it is told to, and when one of the files changes that it came from. One with a
 * fault is reported, and the one that is in force stays.
 */
export class ConfigurationReload implements Disposable {
  readonly #options: ConfigurationReloadOptions;
  readonly #watch: FileWatch;
  /** Reads one after the other: what is read last has to be in force last. */
  #last: Promise<void> = Promise.resolve();
  #closed = false;

  /** @param loaded what is in force */
  constructor(loaded: LoadedConfiguration, options: ConfigurationReloadOptions) {
    this.#options = options;
    this.#watch = new FileWatch({ onChange: () => void this.reload() });
    this.#watch.watch(loaded.files);
  }

  /** Resolves when it is in force, or has been reported. */
  reload(): Promise<void> {
    this.#last = this.#last.then(() => this.#reload());
    return this.#last;
  }

  close(): void {
    this.#closed = true;
    this.#watch.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  async #reload(): Promise<void> {
    const { file, secure, modules, logger, apply } = this.#options;
    try {
      const loaded = await loadConfiguration(file, { modules, secure });
      if (this.#closed) return;
      logWarnings(logger, loaded);
      apply(loaded.configuration);
      this.#watch.watch(loaded.files);
      logger.info(`read ${file} again`);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      logger.error(`the configuration stays as it was: ${reason}`);
    }
  }
}

/** What may be wrong with a configuration although it is in force. */
export function logWarnings(logger: Logger, { configuration, warnings }: LoadedConfiguration): void {
  for (const warning of warnings) logger.warn(formatFault(configuration.file, warning));
}
