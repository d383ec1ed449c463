import {
  type BuildContext,
  type BuilderServices,
  ImageError,
  type Instance,
  type InstanceProvider,
} from '@nodepool-builder/image-builder';
import { explainedError } from './failure.ts';
import { BuildRecord, type InstanceClaim, type InstanceRecord, InstanceRecords } from './instance-records.ts';
import { loginOf } from './login.ts';
import { Machine } from './machine.ts';
import { powerOff } from './power-off.ts';
import { recipeOf } from './recipe.ts';
import { discardCaptures, endInstances } from './remains.ts';
import type { Login } from './remote-shell.ts';
import { runScript, runSteps } from './run-steps.ts';
import { saveImage } from './save-image.ts';
import { SCRIPT_LANGUAGES } from './script-languages.ts';
import type { OnInstance } from './settings.ts';
import { HostKey } from './ssh/host-key.ts';
import { type Identity, identityOf, keptIdentity, keyOfLine } from './ssh/identity.ts';
import { takeUp } from './take-up.ts';

/** Time limit for destroying an instance at the end of a build, in milliseconds; the reaper deletes the rest. */
const END_TIMEOUT = 60_000;

/** Time limit for the state of a failed instance, in milliseconds. */
const PATIENCE = 10_000;

/** User data that permits the login of root, which cloud-init disables by default. */
const CLOUD_CONFIG = '#cloud-config\ndisable_root: false\n';

/** Resources of one build. */
interface Build {
  readonly settings: OnInstance;
  readonly context: BuildContext;
  readonly provider: InstanceProvider;
  readonly claim: InstanceClaim;
  readonly record: BuildRecord;
  readonly identity: Identity;
  readonly login: Login;
  readonly hostKey: HostKey;
}

/**
 * Builds an image on an instance and writes it to the context's outputs. The instance is destroyed in any case, unless
 * it is kept for people to inspect.
 */
export async function buildOnInstance(
  settings: OnInstance,
  services: BuilderServices,
  context: BuildContext,
): Promise<void> {
  const claim = await new InstanceRecords(context).claim(context.imageId, context.signal);
  let release = claim.release;
  try {
    const provider = services.instanceProvider(settings.provider);
    const recipe = await recipeOf(settings, context);
    const takenUp = await takeUp(settings, services, context, claim, recipe);
    const identity = await (takenUp !== undefined && settings.privateKeyFile === undefined
      ? keptIdentity(claim)
      : identityOf(settings.privateKeyFile, claim));
    const entry = takenUp?.entry ?? newEntry(settings, recipe);
    const hostKey = new HostKey(entry.hostKey);
    const login = await loginOf(settings, { ...identity, hostKey });
    const record = new BuildRecord(claim, entry);
    const build: Build = { settings, context, provider, claim, record, identity, login, hostKey };
    if (await makeImage(build, takenUp?.instance)) release = () => {};
  } finally {
    release();
  }
}

function newEntry({ provider, afterRestart }: OnInstance, recipe: string): InstanceRecord {
  return { provider, phase: 'launching', stepsDone: 0, afterRestart, recipe };
}

/** Returns whether a snapshot, and the claim with it, outlives the call until the image is published. */
async function makeImage(build: Build, existing: Instance | undefined): Promise<boolean> {
  let instance = existing;
  try {
    instance ??= await launch(build);
    const snapshot = await customise(build, instance);
    if (snapshot === undefined) {
      await end(build);
      return false;
    }
    await addSnapshot(build, snapshot);
    return true;
  } catch (error) {
    const { signal } = build.context;
    const reason: unknown = signal.aborted ? signal.reason : error;
    const isUnwanted = signal.aborted && !isTimeout(reason);
    const advice = isUnwanted ? undefined : await keep(build, instance);
    const explained = isUnwanted ? reason : await explainedError(reason, instance, build.context, advice);
    if (advice === undefined) await end(build);
    throw explained;
  }
}

async function launch({
  settings,
  context,
  provider,
  claim,
  record,
  identity,
  login,
}: Build): Promise<Instance> {
  const { signal, imageId } = context;
  const { baseImage, minRam, nameFilter, username, connection, privateKeyFile, afterRestart } = settings;
  if (afterRestart === 'resume' && privateKeyFile === undefined) await claim.keepKey(identity.privateKey);
  await record.update({});
  context.log(`an instance of ${baseImage} is launched on provider ${provider.name}`);
  const instance = await provider.launch(
    {
      buildId: imageId,
      image: baseImage,
      ...(minRam !== undefined && { minRam }),
      ...(nameFilter !== undefined && { nameFilter }),
      publicKey: identity.publicKey,
      ...(connection === 'ssh' && username === 'root' && { userData: CLOUD_CONFIG }),
      port: login.port,
    },
    { signal },
  );
  await record.update({ phase: 'running' });
  context.log(`instance ${instance.id} is launched`);
  context.progress(5, 100);
  return instance;
}

/** Performs the remaining phases of the build. Returns the id of the snapshot, if there is one. */
async function customise(build: Build, instance: Instance): Promise<string | undefined> {
  const { settings, context, record, identity, login, hostKey, provider } = build;
  const { signal, imageId } = context;
  const language = SCRIPT_LANGUAGES[settings.shell];
  const log = (line: string): void | Promise<void> => context.buildLog.write(line);
  let machine: Machine | undefined;
  try {
    if (record.entry.phase === 'running') {
      machine = await Machine.logIn({ instance, login, hostKey, language, settings, signal, log });
      const site = { machine, language, settings, context, record };
      if (hostKey.pinned !== undefined) await record.update({ hostKey: hostKey.pinned });
      context.progress(20, 100);
      await runSteps(site);
      await record.update({ phase: 'cleaning' });
      const key = identity.isOwn ? keyOfLine(identity.publicKey) : undefined;
      await runScript(site, 'the cleaning', 'clean', language.clean(key));
      await record.update({ phase: 'cleaned' });
      context.progress(75, 100);
    }
    if (record.entry.phase === 'cleaned') {
      await powerOff({ instance, machine, language, settings, context });
      await record.update({ phase: 'stopped' });
    } else {
      await discardCaptures(provider, imageId, { signal }); // a capture from before a crash, complete or partial
    }
  } finally {
    machine?.close();
  }
  context.progress(80, 100);
  const captured = await instance.capture({ imageId }, { signal });
  await record.update({ phase: 'captured' });
  context.progress(90, 100);
  await saveImage(captured, context);
  return captured.externalId;
}

/** Registers the snapshot, which is deleted if the image is not published. */
async function addSnapshot({ context, provider, claim }: Build, externalId: string): Promise<void> {
  const { imageId, signal } = context;
  await endInstances(provider, imageId, { signal });
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
async function end({ context, provider, record, claim }: Build): Promise<void> {
  const options = { signal: AbortSignal.timeout(END_TIMEOUT) };
  const { imageId, log } = context;
  const isCaptured = ['stopped', 'captured'].includes(record.entry.phase);
  try {
    await record.update({ phase: 'ending' });
    await endInstances(provider, imageId, options);
    if (isCaptured) await discardCaptures(provider, imageId, options);
    await claim.remove();
  } catch (error) {
    log(`what was made for image ${imageId} in provider ${provider.name} is not gone yet: ${String(error)}`);
  }
}

/** Keeps the machine of a failed build if configured and useful. Returns how to log in. */
async function keep(
  { settings, context, record, claim, identity, login }: Build,
  instance: Instance | undefined,
): Promise<string | undefined> {
  const { keepOnFailure, privateKeyFile } = settings;
  const isLeft = ['running', 'cleaning'].includes(record.entry.phase);
  if (keepOnFailure === undefined || instance === undefined || !isLeft) return undefined;
  try {
    const state = await instance.state({ signal: AbortSignal.timeout(PATIENCE) });
    if (state !== 'running') return undefined;
    const keptUntil = new Date(Date.now() + keepOnFailure * 1_000).toISOString();
    if (privateKeyFile === undefined) await claim.keepKey(identity.privateKey);
    const hint = login.hint(await instance.address({ signal: AbortSignal.timeout(PATIENCE) }));
    await record.update({ keptUntil });
    const advice = `the instance is kept until ${keptUntil}, log in with: ${hint}`;
    context.log(advice);
    return advice;
  } catch (error) {
    context.log(`the instance cannot be kept: ${String(error)}`);
    return undefined;
  }
}

function isTimeout(reason: unknown): boolean {
  return reason instanceof ImageError && reason.code === 'build-timeout';
}
