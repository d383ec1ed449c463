import { existsSync } from 'node:fs';
import { readdir, rename, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { ImageError, ImageRepository } from '@nodepool-builder/image-builder';
import { unlessMissing } from '@nodepool-builder/image-builder/internal';
import { recordedProviders } from '@nodepool-builder/on-instance';
import type { Configuration } from '../configuration/configuration.ts';
import { builderIdentity } from '../daemon/builder-identity.ts';
import { Providers } from '../site/providers.ts';
import { errorLine, STANDARD_ERROR_LOGGER, warn } from '../terms/command-error.ts';
import { makeTemporaryDirectory } from './image-file.ts';

/** Owner of the instances that all CI jobs launch. It distinguishes them from daemons' instances. */
const JOB_OWNER = 'ci-job';

/** Name prefix of workspaces. */
const PREFIX = '.nodepool-build-';

/** Name suffix of workspaces whose files are being deleted. */
const REMOVED = '.removed';

/** Timeout for the removal of instances, in milliseconds. */
const CLEANUP_TIMEOUT = 120_000;

/**
 * Opens the providers of a CI job.
 *
 * @param directory for providers that run instances on this host
 * @param scope identifies one job. Default: the instances of all jobs.
 */
export function openJobProviders(
  configuration: Pick<Configuration, 'providers' | 'instanceProviders'>,
  directory: string = resolve('.'),
  scope?: string,
): Providers {
  const providers = new Providers({
    logger: () => STANDARD_ERROR_LOGGER,
    instances: { directory, owner: JOB_OWNER, ...(scope !== undefined && { scope }) },
  });
  providers.configure(configuration);
  return providers;
}

/** Repository and providers of one build in a CI job. */
interface JobWorkspace {
  readonly repository: ImageRepository;
  readonly providers: Providers;
}

/**
 * Creates a workspace for one build in `parent`, on the same file system, and removes it afterwards. Before that, it
 * removes the workspaces of killed processes, with their instances.
 */
export async function withWorkspace<T>(
  parent: string,
  configuration: Configuration,
  work: (workspace: JobWorkspace) => Promise<T>,
): Promise<T> {
  await removeOrphans(parent, configuration);
  const directory = await makeTemporaryDirectory(parent, PREFIX);
  let workspace: JobWorkspace;
  try {
    workspace = await openWorkspace(directory, configuration);
  } catch (error) {
    await rm(directory, { recursive: true, force: true });
    throw error;
  }
  try {
    return await work(workspace);
  } finally {
    await removeWorkspace(workspace).catch(warnOfWorkspace(directory));
  }
}

async function removeOrphans(parent: string, configuration: Configuration): Promise<void> {
  for (const name of await readdir(parent)) {
    if (!name.startsWith(PREFIX)) continue;
    const directory = join(parent, name);
    await removeOrphan(directory, configuration).catch(warnOfWorkspace(directory));
  }
}

async function removeOrphan(directory: string, configuration: Configuration): Promise<void> {
  if (directory.endsWith(REMOVED)) {
    await rm(directory, { recursive: true, force: true });
  } else if (existsSync(join(directory, '.nodepool-builder/builder-id'))) {
    await removeWorkspace(await openWorkspace(directory, configuration));
  }
}

function warnOfWorkspace(directory: string): (error: unknown) => void {
  return (error) => {
    const isInUse = error instanceof ImageError && error.code === 'directory-locked';
    if (!isInUse) warn(`cannot remove the workspace ${directory}: ${errorLine(error)}`);
  };
}

async function openWorkspace(directory: string, configuration: Configuration): Promise<JobWorkspace> {
  const repository = await ImageRepository.open(directory, { logger: STANDARD_ERROR_LOGGER });
  try {
    const identity = await builderIdentity(repository.directory);
    const providers = openJobProviders(configuration, repository.directory, identity.replaceAll('-', ''));
    // Throws for a provider that is no longer configured.
    for (const name of await recordedProviders(repository)) providers.instanceProvider(name);
    return { repository, providers };
  } catch (error) {
    await repository.close();
    throw error;
  }
}

/** Removes the instances and captured images, then the directory. Warns of instances that it cannot remove. */
async function removeWorkspace({ repository, providers }: JobWorkspace): Promise<void> {
  const { directory } = repository;
  let isClear = true;
  try {
    const signal = AbortSignal.timeout(CLEANUP_TIMEOUT);
    for (const provider of providers.used()) {
      for (const instance of await provider.list({ signal })) await instance.destroy({ signal });
      for (const capture of (await provider.captures?.({ signal })) ?? []) await capture.discard({ signal });
    }
  } catch (error) {
    isClear = false;
    warn(
      `instances of this build could not be removed: ${errorLine(error)}; ` +
        'the next build with the same --output, or the command reap, removes them',
    );
  }
  providers[Symbol.dispose]();
  await repository.close();
  const staged = (await unlessMissing(readdir(join(directory, '.nodepool-builder/staging')))) ?? [];
  if (!isClear || staged.length > 0) return; // mounts or a machine may still use it
  const removed = directory + REMOVED;
  await unlessMissing(rename(directory, removed));
  await rm(removed, { recursive: true, force: true });
}
