import { mkdir } from 'node:fs/promises';
import { isDeepStrictEqual } from 'node:util';
import { type Material, packageListPath } from '../attestation.ts';
import { SAYS_KILLED } from '../cleanup/build-namespace.ts';
import { MARKER } from '../cleanup/processes.ts';
import type { BuildJob, FullBuildContext, RunOptions } from '../context.ts';
import type { DiskImage } from '../disk-image.ts';
import { ImageError } from '../errors.ts';
import type { ImageFormat } from '../formats.ts';
import { type CommandResult, describeEnd, runCommand } from '../process/command.ts';
import { type Environment, inheritedEnvironment } from '../process/inherited-environment.ts';
import { imageFileName } from '../repository/layout.ts';
import type { BuildSite } from '../repository.ts';
import type { Progress, Snapshot } from '../types.ts';
import type { BuildLog } from './build-log.ts';
import { FullDiskWatch } from './full-disk.ts';
import { stripCredentials } from './material-address.ts';
import { repositoryFinder } from './source-repository.ts';
import { temporaryVariables } from './temporary-variables.ts';

/** Tolerated difference between the clocks of two hosts, in milliseconds. */
const CLOCK_TOLERANCE = 60_000;

/** Settings of a command that the core itself runs. */
export interface LoggedCommandOptions extends RunOptions {
  /** Ends the command before the build does. */
  readonly signal?: AbortSignal;
  /** See `CommandOptions`. */
  readonly onPartialLine?: (text: string) => void;
  /** Changes a line before it is logged. Default: no change. */
  readonly clean?: (line: string) => string;
}

/** A build context with members that only the core uses. */
export interface CoreContext extends FullBuildContext {
  /** Runs a command like {@link FullBuildContext.run}, but returns its result even if it fails. */
  readonly runLogged: (
    command: string,
    args: readonly string[],
    options?: LoggedCommandOptions,
  ) => Promise<CommandResult>;
  /** Facts about the image that the builder has reported. */
  readonly reported: { built?: Date; readonly snapshots: Snapshot[]; readonly materials: Material[] };
}

interface BuildParts {
  readonly job: BuildJob;
  readonly diskimage: DiskImage;
  readonly formats: readonly ImageFormat[];
  readonly site: BuildSite;
  readonly log: BuildLog;
  readonly signal: AbortSignal;
  readonly onProgress: (progress: Progress) => void;
  readonly reserveSpace: FullBuildContext['reserveSpace'];
}

/** Creates the context of one build. */
export function createBuildContext(parts: BuildParts): CoreContext {
  const { job, diskimage, formats, site, log, signal, onProgress, reserveSpace } = parts;
  const { imageId, repository, logger, environment = inheritedEnvironment(), maxDiskSize } = job;
  const { staging, state, onSettled } = site;
  const runLogged = createRunLogged(environment, parts);
  const findRepository = repositoryFinder(async () => {
    const namespace = await staging.namespace((reason) => void log.write(notIsolated(reason)));
    return namespace && ((...wrapped) => namespace.enter(...wrapped));
  }, signal);
  let cache: Promise<string | undefined> | undefined;
  const reported: CoreContext['reported'] = { snapshots: [], materials: [] };
  return {
    imageId,
    diskimage,
    formats,
    directory: staging.directory,
    environment,
    maxDiskSize,
    signal,
    outputPath: (format) => staging.path(imageFileName(imageId, format)),
    runLogged,
    run: async (command, args = [], options = {}) => {
      const result = await runLogged(command, args, options);
      if (result.exitCode !== 0) throw commandError(command, result, log.name);
    },
    log: (line) => void log.write(line),
    buildLog: log,
    progress: (done, total, phase) => onProgress({ done, total, ...(phase !== undefined && { phase }) }),
    reserveSpace,
    cacheDirectory: () => (cache ??= takeCache(parts)),
    stateDirectory: () => state.take(signal),
    recordDirectory: (name) => repository.recordDirectory(name),
    reported,
    setBuiltAt: (time) => {
      reported.built = time;
      if (time.getTime() <= Date.now() + CLOCK_TOLERANCE) return;
      logger?.warn(
        `image ${imageId} has a build time in the future, ${time.toISOString()}: it counts as built now; ` +
          'set the clock of the host that built it, or of this host',
      );
    },
    packageList: job.attester?.wantsPackages ? packageListPath(staging.directory, imageId) : undefined,
    wantsMaterials: job.attester !== undefined,
    addMaterial: (material) => addMaterial(reported.materials, material),
    findRepository: async (path) => (job.attester === undefined ? undefined : await findRepository(path)),
    addSnapshot: (snapshot, settle) => {
      reported.snapshots.push(snapshot);
      onSettled(settle);
    },
  };
}

function addMaterial(known: Material[], { uri, ...rest }: Material): void {
  const material = { ...rest, ...(uri !== undefined && { uri: stripCredentials(uri) }) };
  if (!known.some((other) => isDeepStrictEqual(other, material))) known.push(material);
}

async function takeCache({ job, diskimage, site, log }: BuildParts): Promise<string | undefined> {
  const { cacheLimit = 0 } = job;
  if (cacheLimit === 0) return undefined;
  const cache = await site.caches.take(diskimage.name, cacheLimit);
  if (cache !== undefined) {
    site.onSettled((isPublished) => cache.release(isPublished));
    return cache.directory;
  }
  void log.write(`# another build of ${diskimage.name} uses its cache; this build starts with an empty one`);
  const directory = site.staging.path('cache');
  await mkdir(directory);
  return directory;
}

function createRunLogged(
  environment: Environment,
  { diskimage, signal: build, site: { staging }, log }: BuildParts,
): CoreContext['runLogged'] {
  const { directory } = staging;
  let temporary: Promise<Environment> | undefined;
  return async (command, args, options = {}) => {
    const { env, cwd = directory, signal, onLine, onPartialLine, clean = (line) => line } = options;
    const namespace = await staging.namespace((reason) => void log.write(notIsolated(reason)));
    temporary ??= temporaryVariables(staging, diskimage, environment);
    const variables = { ...environment, ...env, ...(await temporary), [MARKER]: directory };
    await log.write(`$ ${[command, ...args].join(' ')}`);
    let isKilled = false;
    const disks = new FullDiskWatch([
      directory,
      ...Object.values(await temporary).map((path) => path ?? directory),
    ]);
    const { exitCode, ...result } = await runCommand(command, args, {
      cwd,
      env: variables,
      signal: signal === undefined ? build : AbortSignal.any([build, signal]),
      ...(namespace && { wrap: (...wrapped) => namespace.enter(...wrapped) }),
      onStart: (pid) => staging.recordProcessGroup(pid),
      onLine: (line) => {
        if (namespace !== undefined && SAYS_KILLED.test(line)) {
          isKilled = true;
          return undefined;
        }
        disks.look();
        onLine?.(line);
        return log.write(clean(line));
      },
      ...(onPartialLine && { onPartialLine }),
    });
    const fullDisk = exitCode === 0 ? undefined : await disks.find();
    return {
      ...result,
      ...(fullDisk !== undefined && { fullDisk }),
      ...(isKilled ? { signal: 'SIGKILL' } : exitCode !== undefined && { exitCode }),
      ...(result.step !== undefined && { step: log.mask(result.step) }),
      decisiveLines: result.decisiveLines
        .filter((line) => !(isKilled && SAYS_KILLED.test(line)))
        .map((line) => log.mask(clean(line))),
    };
  };
}

function notIsolated(reason: string): string {
  return (
    `# the build has no namespaces of its own (${reason}): a process with another session, directory and environment ` +
    'outlives it, and so does a mount outside its directories'
  );
}

function commandError(command: string, result: CommandResult, logName: string): ImageError {
  const end = describeEnd(result);
  const { diskFull, fullDisk } = result;
  if (diskFull || fullDisk !== undefined) {
    const isNamed = fullDisk === undefined && /no space left on device/i.test(end);
    const reason = isNamed ? '' : `: ${fullDisk ?? 'no space left on device'}`;
    const remedy = 'free space, or lower build-cache-size';
    return new ImageError('disk-full', `"${command}" ${end}${reason}; ${remedy}; see ${logName}`);
  }
  const message = `"${command}" ${end}; see ${logName}`;
  return new ImageError('command-failed', message, { cause: result });
}
