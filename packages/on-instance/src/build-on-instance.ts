import { join } from 'node:path';
import {
  type BuilderServices,
  type CapturedImage,
  ImageError,
  type Instance,
  type InstanceProvider,
  type InstanceState,
} from '@nodepool-builder/image-builder';
import {
  conversionSource,
  convertImage,
  type FullBuildContext,
  isConvertible,
  withTimeout,
} from '@nodepool-builder/image-builder/internal';
import { addMaterials } from './build-materials.ts';
import { explainedError } from './failure.ts';
import {
  destroyInstances,
  discardCaptures,
  type InstanceClaim,
  type InstanceRecord,
  InstanceRecords,
  instancesOf,
} from './instance-records.ts';
import { leavePackageList } from './leave-package-list.ts';
import { Machine, SCRIPT_LANGUAGES } from './machine.ts';
import type { OnInstance } from './on-instance-settings.ts';
import { powerOff } from './power-off.ts';
import type { Login } from './remote-shell.ts';
import { HostKey } from './ssh/host-key.ts';
import { type Identity, identityOf } from './ssh/identity.ts';
import { sshLogin } from './ssh/ssh-login.ts';
import { configurationDigest, scriptFiles, stepEnvironment } from './step-inputs.ts';

/** Timeout for destroying an instance at the end of a build, in milliseconds. The reaper deletes the rest. */
const END_TIMEOUT = 60_000;

/** Timeout for reading the state of a failed instance, in milliseconds. */
const STATE_TIMEOUT = 10_000;

/** Maximum number of characters of a command in the title of its step. */
const MAX_TITLE_LENGTH = 80;

/** User data that permits the login of root, which cloud-init disables by default. */
const CLOUD_CONFIG = '#cloud-config\ndisable_root: false\n';

/** Required state of the machine for resuming in a phase. A build cannot be resumed in other phases. */
const RESUMABLE: Readonly<Partial<Record<InstanceRecord['phase'], readonly InstanceState[]>>> = {
  running: ['running'],
  cleaned: ['running', 'stopped'],
  stopped: ['stopped'],
  captured: ['stopped'],
};

/** A build that an earlier process started. */
interface EarlierBuild {
  readonly entry: InstanceRecord;
  readonly instance: Instance;
}

interface BuildParts {
  readonly settings: OnInstance;
  readonly context: FullBuildContext;
  readonly provider: InstanceProvider;
  readonly claim: InstanceClaim;
  readonly entry: InstanceRecord;
  readonly identity: Identity;
  readonly login: Login;
  readonly services: BuilderServices;
}

/**
 * Builds an image on an instance and writes it to the context's outputs. The instance is destroyed in any case, unless
 * it is kept for inspection.
 */
export async function buildOnInstance(
  settings: OnInstance,
  services: BuilderServices,
  context: FullBuildContext,
): Promise<void> {
  const claim = await new InstanceRecords(context).claim(context.imageId, context.signal);
  let release = claim.release;
  try {
    const { provider: name, 'private-key': privateKey, 'after-restart': afterRestart } = settings;
    const provider = services.instanceProvider(name);
    const { scriptDirectory } = SCRIPT_LANGUAGES[settings.shell];
    const recipe = await configurationDigest(settings, context, scriptDirectory);
    const earlier = await resumable(settings, services, context, claim, recipe);
    const identity = await identityOf(privateKey, claim, earlier !== undefined);
    const entry =
      earlier?.entry ?? ({ provider: name, phase: 'launching', stepsDone: 0, afterRestart, recipe } as const);
    const login = await loginOf(settings, identity, new HostKey(entry.hostKey));
    const parts = { settings, services, context, provider, claim, entry, identity, login };
    if (await new InstanceBuild(parts).run(earlier?.instance)) release = () => {};
  } finally {
    release();
  }
}

/**
 * Returns the earlier build of the same image if it can be resumed; otherwise removes it.
 *
 * @throws ImageError `invalid-configuration` if its provider is no longer configured
 */
async function resumable(
  { 'after-restart': afterRestart, sysprep }: OnInstance,
  services: BuilderServices,
  { imageId, signal, log }: FullBuildContext,
  claim: InstanceClaim,
  recipe: string,
): Promise<EarlierBuild | undefined> {
  const entry = await claim.read();
  if (entry === undefined) return undefined;
  const provider = services.instanceProvider(entry.provider);
  const [instance] = await instancesOf(provider, imageId, { signal });
  const isSame = entry.recipe === recipe && entry.keptUntil === undefined;
  if (afterRestart === 'resume' && isSame && instance !== undefined) {
    const state = await instance.state({ signal });
    const isAmbiguous = sysprep && entry.phase === 'cleaned' && state === 'running';
    if (RESUMABLE[entry.phase]?.includes(state) && !isAmbiguous) return { entry, instance };
  }
  log(`removing the instance of an earlier build of image ${imageId}`);
  await destroyInstances(provider, imageId, { signal });
  await discardCaptures(provider, imageId, { signal });
  await claim.remove();
  return undefined;
}

async function loginOf(
  { username, winrm }: OnInstance,
  identity: Identity,
  hostKey: HostKey,
): Promise<Login> {
  if (winrm === undefined) return sshLogin(username, identity, hostKey);
  // imported on demand, because SSH needs no HTTP client
  const { winrmLogin } = await import('./winrm/winrm-login.ts');
  return winrmLogin(username, winrm, hostKey);
}

/** Returns the title of a step in messages: the first line of its command. */
function stepTitle(command: string, { mask }: Pick<FullBuildContext['buildLog'], 'mask'>): string {
  const line = mask(command.trim().replace(/\n.*/s, '')); // precedes shortening, which may split a secret
  return `step ${JSON.stringify(line.length > MAX_TITLE_LENGTH ? `${line.slice(0, MAX_TITLE_LENGTH)}…` : line)}`;
}

/**
 * Writes a captured image in each requested format, by the provider or else by conversion.
 *
 * @throws ImageError `format-unavailable`, `image-too-large`, `disk-full`, `conversion-failed`
 */
export async function saveImage(
  captured: CapturedImage,
  { formats, outputPath, directory, imageId, maxDiskSize, signal }: FullBuildContext,
): Promise<void> {
  const options = { signal, maxDiskSize };
  const direct = formats.filter((format) => captured.formats.includes(format));
  for (const format of direct) await captured.save(format, outputPath(format), options);
  const others = formats.filter((format) => !direct.includes(format));
  if (others.length === 0) return;
  const saved = direct.map((format) => ({ format, path: outputPath(format) }));
  let source = conversionSource(saved);
  const convertible = captured.formats.find(isConvertible);
  if (source === undefined && convertible !== undefined) {
    source = { format: convertible, path: join(directory, 'captured') };
    await captured.save(convertible, source.path, options);
  }
  if (source === undefined) {
    throw new ImageError(
      'format-unavailable',
      `image ${imageId} was captured as ${captured.formats.join(', ')}, which cannot be converted to ${others.join(', ')}`,
    );
  }
  for (const format of others) await convertImage(source, format, outputPath(format), options);
}

/** One build, from the launch or a later phase to the end of the instance. */
class InstanceBuild {
  readonly #parts: BuildParts;
  #entry: InstanceRecord;

  constructor(parts: BuildParts) {
    this.#parts = parts;
    this.#entry = parts.entry;
  }

  /** Returns whether a snapshot, and with it the claim, outlives the call until the image is published. */
  async run(existing: Instance | undefined): Promise<boolean> {
    const { signal } = this.#parts.context;
    let instance = existing;
    try {
      instance ??= await this.#launch();
      const { settings, context, provider } = this.#parts;
      const materials = addMaterials(settings, context, provider, this.#entry.image);
      materials.catch(() => {}); // the steps do not wait for digests
      const snapshot = await this.#customize(instance);
      await materials;
      if (snapshot !== undefined) await this.#addSnapshot(snapshot);
      else await this.#end();
      return snapshot !== undefined;
    } catch (error) {
      const reason: unknown = signal.aborted ? signal.reason : error;
      const isTimeout = reason instanceof ImageError && reason.code === 'build-timeout';
      const isCancelled = signal.aborted && !isTimeout;
      const advice = isCancelled ? undefined : await this.#keep(instance);
      const explained = isCancelled
        ? reason
        : await explainedError(reason, instance, this.#parts.context, advice);
      if (advice === undefined) await this.#end();
      throw explained;
    }
  }

  async #launch(): Promise<Instance> {
    const { settings, context, provider, claim, identity, login } = this.#parts;
    const { signal, imageId } = context;
    const { 'min-ram': minRam, 'name-filter': nameFilter, username } = settings;
    if (settings['after-restart'] === 'resume' && identity.isOwn) await claim.keepKey(identity.privateKey);
    await this.#update({});
    const image = await this.#baseImage();
    if (context.wantsMaterials) await this.#update({ image });
    context.log(`launching an instance of ${image} in provider ${provider.name}`);
    const instance = await provider.launch(
      {
        buildId: imageId,
        image,
        ...(minRam !== undefined && { minRam }),
        ...(nameFilter !== undefined && { nameFilter }),
        publicKey: identity.publicKey,
        ...(settings.winrm === undefined && username === 'root' && { userData: CLOUD_CONFIG }),
        port: login.port,
      },
      { signal },
    );
    await this.#update({ phase: 'running' });
    context.log(`launched instance ${instance.id}`);
    context.progress(5, 100);
    return instance;
  }

  /** Returns the name or id of the base image, which filters may select. */
  async #baseImage(): Promise<string> {
    const { settings, services, context, provider } = this.#parts;
    const { 'base-image': choice } = settings;
    if (typeof choice === 'string') return choice;
    return await services.chooseImage(provider.name, choice, { signal: context.signal });
  }

  /** Performs the remaining phases of the build. Returns the id of the snapshot, if there is one. */
  async #customize(instance: Instance): Promise<string | undefined> {
    const { settings, context, provider } = this.#parts;
    const { signal, imageId } = context;
    let machine: Machine | undefined;
    try {
      if (this.#entry.phase === 'running') {
        machine = await Machine.logIn({ ...this.#parts, instance });
        await this.#prepare(machine);
      }
      if (this.#entry.phase === 'cleaned') {
        await powerOff({ instance, settings }, machine, signal, context.log);
        await this.#update({ phase: 'stopped' });
      } else {
        await discardCaptures(provider, imageId, { signal }); // a complete or partial capture from before a crash
      }
    } finally {
      machine?.close();
    }
    context.progress(80, 100);
    const captured = await instance.capture({ imageId }, { signal });
    await this.#update({ phase: 'captured' });
    context.progress(90, 100);
    await saveImage(captured, context);
    return captured.externalId;
  }

  /** Writes the scripts to the machine, runs the remaining steps, and cleans it. */
  async #prepare(machine: Machine): Promise<void> {
    const { settings, context, identity, login } = this.#parts;
    const { steps, 'boot-timeout': bootTimeout } = settings;
    const language = SCRIPT_LANGUAGES[settings.shell];
    const { pinned: hostKey } = login.hostKey;
    if (hostKey !== undefined) await this.#update({ hostKey });
    context.progress(20, 100);
    const files = await scriptFiles(context.diskimage.scriptDir);
    const environment = stepEnvironment(context, language.scriptDirectory);
    await withTimeout(
      bootTimeout,
      context.signal,
      (signal) =>
        machine.run('the preparation', 'prepare', language.prepare, { files, asAdministrator: true, signal }),
      () => new ImageError('instance-failed', `the machine did not set itself up within ${bootTimeout} s`),
    );
    for (const [index, step] of steps.entries()) {
      if (index < this.#entry.stepsDone) continue;
      const title = stepTitle(step, context.buildLog);
      await context.buildLog.write(`== ${title}`);
      await machine.run(title, `step-${index}`, language.step(step, environment));
      await this.#update({ stepsDone: index + 1 });
      context.progress(20 + (50 * (index + 1)) / steps.length, 100);
    }
    await leavePackageList(machine, language, context);
    await this.#update({ phase: 'cleaning' });
    const key = identity.isOwn ? identity.publicKey.split(' ')[1] : undefined;
    await machine.run('the cleaning', 'clean', language.clean(key), { asAdministrator: true });
    await this.#update({ phase: 'cleaned' });
    context.progress(75, 100);
  }

  /** Registers the snapshot, which is deleted if the image is not published. */
  async #addSnapshot(externalId: string): Promise<void> {
    const { context, provider, claim } = this.#parts;
    const { imageId, signal } = context;
    await destroyInstances(provider, imageId, { signal });
    signal.throwIfAborted(); // the build may have been cancelled
    context.addSnapshot({ provider: provider.name, externalId }, async (isPublished) => {
      try {
        const options = { signal: AbortSignal.timeout(END_TIMEOUT) };
        if (!isPublished) await discardCaptures(provider, imageId, options);
        await claim.remove();
      } finally {
        claim.release();
      }
    });
  }

  /** Removes the resources of the build in the provider. The reaper retries failures. */
  async #end(): Promise<void> {
    const { context, provider, claim } = this.#parts;
    const { imageId } = context;
    const options = { signal: AbortSignal.timeout(END_TIMEOUT) };
    const isCaptured = ['stopped', 'captured'].includes(this.#entry.phase);
    try {
      await this.#update({ phase: 'ending' });
      await destroyInstances(provider, imageId, options);
      if (isCaptured) await discardCaptures(provider, imageId, options);
      await claim.remove();
    } catch (error) {
      context.log(
        `cannot remove the instance of image ${imageId} in provider ${provider.name}: ${String(error)}; ` +
          'the next scan retries',
      );
    }
  }

  /** Keeps the machine of a failed build if configured and useful. Returns how to log in. */
  async #keep(instance: Instance | undefined): Promise<string | undefined> {
    const { settings, context, claim, identity, login } = this.#parts;
    const { 'keep-on-failure': keepOnFailure } = settings;
    const isUseful = ['running', 'cleaning'].includes(this.#entry.phase);
    if (keepOnFailure === undefined || instance === undefined || !isUseful) return undefined;
    try {
      const state = await instance.state({ signal: AbortSignal.timeout(STATE_TIMEOUT) });
      if (state !== 'running') return undefined;
      const keptUntil = new Date(Date.now() + keepOnFailure * 1_000).toISOString();
      if (identity.isOwn) await claim.keepKey(identity.privateKey);
      const hint = login.hint(await instance.address({ signal: AbortSignal.timeout(STATE_TIMEOUT) }));
      await this.#update({ keptUntil });
      const advice = `the instance is kept until ${keptUntil}, log in with: ${hint}`;
      context.log(advice);
      return advice;
    } catch (error) {
      context.log(`cannot keep the instance: ${String(error)}`);
      return undefined;
    }
  }

  /** Writes a change of the record before the build continues. */
  async #update(change: Partial<InstanceRecord>): Promise<void> {
    this.#entry = { ...this.#entry, ...change };
    await this.#parts.claim.write(this.#entry);
  }
}
