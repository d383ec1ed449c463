import type { Logger } from '@nodepool-builder/image-builder';
import type { Configuration } from '../configuration/configuration.ts';
import { formatDiagnostic } from '../configuration/diagnostic.ts';
import { type LoadedConfiguration, loadConfiguration } from '../configuration/load.ts';
import type { LoadedPlugins } from '../configuration/plugins.ts';
import { FileWatch } from './watch-files.ts';

/** Settings of {@link ConfigurationReload}. */
export interface ConfigurationReloadOptions {
  /** The file of `-c`. */
  readonly file: string;
  /** The file of `-s`. */
  readonly secure?: string | undefined;
  readonly logger: Logger;
  /** Applies a configuration. */
  readonly apply: (configuration: Configuration) => void;
}

/**
 * Reloads the configuration on request, and when one of its files changes. If the new one is invalid, this is logged
 * and the old one stays in force.
 */
export class ConfigurationReload implements Disposable {
  readonly #options: ConfigurationReloadOptions;
  readonly #plugins: LoadedPlugins;
  readonly #watch: FileWatch;
  /** The last reload. Reloads run one after the other, so that the newest configuration wins. */
  #last: Promise<void> = Promise.resolve();
  #closed = false;

  /** @param loaded the configuration in force */
  constructor(loaded: LoadedConfiguration, options: ConfigurationReloadOptions) {
    this.#options = options;
    this.#plugins = loaded.plugins;
    this.#watch = new FileWatch({ onChange: () => void this.reload() });
    this.#watch.watch(loaded.files);
  }

  /** Resolves once the new configuration is applied or refused. */
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
    const { file, secure, logger, apply } = this.#options;
    try {
      const loaded = await loadConfiguration(file, { secure, plugins: this.#plugins });
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

/** Logs the warnings of a configuration that is in force. */
export function logWarnings(logger: Logger, { configuration, warnings }: LoadedConfiguration): void {
  for (const warning of warnings) logger.warn(formatDiagnostic(configuration.file, warning));
}
