import { existsSync } from 'node:fs';
import { readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { ImageError, ImageRepository } from '@nodepool-builder/image-builder';
import { unlessMissing } from '@nodepool-builder/image-builder/module-kit';
import { recordedProviders } from '@nodepool-builder/on-instance';
import type { Configuration } from '../configuration/configuration.ts';
import { builderIdentity } from '../daemon/builder-identity.ts';
import { Providers } from '../daemon/providers.ts';
import { makeTemporaryDirectory } from './image-file.ts';
import { STANDARD_ERROR_LOGGER } from './standard-error-logger.ts';

/** Owner of the instances that all CI jobs launch: it tells them from those of daemons. */
const JOB_OWNER = 'ci-job';

/** Prefix of the names of workspaces. */
const PREFIX = '.nodepool-build-';

/** Time limit for the removal of instances, in milliseconds. */
const CLEANUP_TIMEOUT = 120_000;

/**
 * Opens the providers of instances for CI jobs.
 *
 * @param directory for providers that run instances on this host
 * @param scope of one job. Default: the instances of all jobs.
 */
export function openJobInstances(
  configuration: Pick<Configuration, 'providers' | 'instanceProviders'>,
  directory: string,
  scope?: string,
): Providers {
  const providers = new Providers({
    logger: () => STANDARD_ERROR_LOGGER,
    environment: process.env,
    instances: { directory, owner: JOB_OWNER, ...(scope !== undefined && { scope }) },
  });
  providers.configure(configuration);
  return providers;
}

/** A directory for one build in a CI job: its repository, and its instances on this host or in a cloud. */
export class JobWorkspace {
  readonly repository: ImageRepository;
  readonly providers: Providers;

  private constructor(repository: ImageRepository, providers: Providers) {
    this.repository = repository;
    this.providers = providers;
  }

  /** Creates one in `parent`, on the same file system. */
  static async create(parent: string, configuration: Configuration): Promise<JobWorkspace> {
    const directory = await makeTemporaryDirectory(parent, PREFIX);
    try {
      return await JobWorkspace.#open(directory, configuration);
    } catch (error) {
      await rm(directory, { recursive: true, force: true });
      throw error;
    }
  }

  /** Removes the workspaces in `parent` whose process was killed, with their instances. */
  static async removeOrphans(parent: string, configuration: Configuration): Promise<void> {
    for (const name of await readdir(parent)) {
      const directory = join(parent, name);
      if (!name.startsWith(PREFIX) || !existsSync(join(directory, '.nodepool-builder/builder-id'))) continue;
      try {
        const workspace = await JobWorkspace.#open(directory, configuration);
        await workspace.close();
      } catch (error) {
        const isInUse = error instanceof ImageError && error.code === 'directory-locked';
        if (!isInUse) STANDARD_ERROR_LOGGER.warn(`the workspace ${directory} stays: ${String(error)}`);
      }
    }
  }

  static async #open(directory: string, configuration: Configuration): Promise<JobWorkspace> {
    const repository = await ImageRepository.open(directory, { logger: STANDARD_ERROR_LOGGER });
    try {
      const identity = await builderIdentity(repository.directory);
      const scope = identity.replaceAll('-', '');
      const providers = openJobInstances(configuration, repository.directory, scope);
      for (const name of await recordedProviders(repository)) providers.instanceProvider(name); // throws for one that is no longer configured
      return new JobWorkspace(repository, providers);
    } catch (error) {
      await repository.close();
      throw error;
    }
  }

  /** Removes the instances and captured images, then the directory. Warns of what it cannot remove; it never throws. */
  async close(): Promise<void> {
    const { directory } = this.repository;
    const isClear = await this.#clear().catch((error: unknown) => {
      STANDARD_ERROR_LOGGER.warn(
        `instances of this build could not be removed: ${String(error)}; ` +
          'the next build with the same --output, or the command reap, removes them',
      );
      return false;
    });
    this.providers[Symbol.dispose]();
    await this.repository.close();
    const staged = await unlessMissing(readdir(join(directory, '.nodepool-builder/staging')));
    if (!isClear || (staged !== undefined && staged.length > 0)) return; // mounts or a machine may be in it
    const removed = `${directory}.removed`;
    await unlessMissing(rename(directory, removed));
    await rm(removed, { recursive: true, force: true });
  }

  async #clear(): Promise<true> {
    const signal = AbortSignal.timeout(CLEANUP_TIMEOUT);
    for (const provider of this.providers.used) {
      for (const instance of await provider.list({ signal })) await instance.destroy({ signal });
      for (const capture of (await provider.captures?.({ signal })) ?? []) await capture.discard({ signal });
    }
    return true;
  }
}
