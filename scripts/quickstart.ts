/**
 * The main job from end to end, on real input: `npm run quickstart`. Starts `nodepool-builder --all-in-one`, which
 * builds a Debian image and uploads it to two providers by itself; takes the image out of its configuration, upon
 * which it deletes it everywhere; and verifies each step. Exits with 0 only if every step happened.
 */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { link, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { extname, join, relative } from 'node:path';
import { text as readAll } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { Admin, type FunctionStatus } from '@nodepool-builder/gearman-node';
import { freePort } from './free-port.ts';
import { quickstartConfiguration, withoutImages } from './quickstart/configuration.ts';
import { Daemon } from './quickstart/daemon.ts';
import { describeDebian } from './quickstart/debian-image.ts';
import { GrownLog } from './quickstart/grown-log.ts';
import { findLeftovers, processIds } from './quickstart/leftovers.ts';
import { availableDebian, requireSpace, requireSudo } from './quickstart/machine.ts';
import { progressIn } from './quickstart/progress.ts';

const root = join(import.meta.dirname, '..');
const nodepoolBuilder = join(root, 'node_modules/.bin/nodepool-builder');
const template = join(root, 'examples/quickstart/nodepool.yaml');
const data = join(root, 'quickstart-data');
const images = join(data, 'images');
const served = join(data, 'served');
const state = join(data, 'state');
const config = join(data, 'nodepool.yaml');
/** A copy of what was uploaded, for whoever ran this: nodepool-builder keeps nothing in the end. */
const kept = join(data, 'debian.qcow2');
const daemonLog = join(data, 'daemon.log');

/** Between two looks at what goes on, in milliseconds. */
const LOOK_INTERVAL = 200;

/** How long what should be so in a moment may take, in milliseconds. */
const SETTLE_TIMEOUT = 15_000;

/** The providers of the configuration that take the image. */
const PROVIDERS = ['local', 'local-raw'];

/** An entry of `image-list --json`, as far as it is read here. */
interface ListedUpload {
  readonly 'image-id': string;
  readonly 'external-id': string;
  readonly provider: string;
  readonly state: string;
}

const interrupted = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => interrupted.abort(new Error(`stopped by ${signal}`)));
}

try {
  await quickstart();
} catch (error) {
  const reason: unknown = interrupted.signal.aborted ? interrupted.signal.reason : error;
  console.error(`\nquickstart: ${reason instanceof Error ? reason.message : String(reason)}`);
  process.exitCode = 1;
}

async function quickstart(): Promise<void> {
  const before = new Set(processIds());
  step('Looking at this machine');
  await requireSudo();
  await mkdir(images, { recursive: true });
  await requireSpace(data);
  const debian = await availableDebian(process.env);
  const port = await freePort();
  // What another run has left: this one begins with nothing but what was downloaded.
  for (const left of [served, state, kept]) await rm(left, { recursive: true, force: true });
  await mkdir(served);
  const settings = { port, debian, cacheDirectory: join(data, 'cache') };
  const configuration = quickstartConfiguration(await readFile(template, 'utf8'), template, settings);
  await writeFile(config, configuration);
  tell(`Debian ${debian.release} from ${debian.mirror}; configuration in ${shown(config)}`);

  step('Starting job server, builder and manager in one process');
  const args = ['--all-in-one', '-d', '-c', config];
  tell(`nodepool-builder ${args.map(shown).join(' ')}    (log: ${shown(daemonLog)})`);
  const daemon = new Daemon({
    command: [process.execPath, nodepoolBuilder, ...args],
    logFile: daemonLog,
    onLost: (ending) =>
      interrupted.abort(new Error(`the daemon ended by itself (${ending}); see ${shown(daemonLog)}`)),
  });
  const admin = new Admin({ host: '127.0.0.1', port });
  try {
    const log = new GrownLog(daemonLog);
    const uploads = await buildAndUpload(log);
    const imageId = await compare(uploads);
    step('Taking the image out of the configuration: what there is of it is not wanted any more');
    await writeFile(config, withoutImages(configuration));
    daemon.reload();
    await seeDeleted(log, admin, imageId);
    step('Stopping the daemon');
  } catch (error) {
    tell('stopping the daemon and what it runs');
    await daemon.stop(true).catch((failure: Error) => console.error(failure.message));
    throw error;
  } finally {
    await admin.close();
  }
  const ending = await daemon.stop(false);
  if (ending !== 0) throw new Error(`the daemon ended with ${ending}, not 0; see ${shown(daemonLog)}`);
  const leftovers = await until(
    () => findLeftovers(data, before),
    (found) => found.length === 0,
  );
  if (leftovers.length > 0) throw new Error(`something was left behind:\n${leftovers.join('\n')}`);
  tell('no process, mount or loop device is left');
  console.log(`\nDone. A copy of the Debian disk image lies at ${kept}`);
}

/** Nobody has to ask for it, as the image is in the configuration. Resolves with what is in the providers. */
async function buildAndUpload(log: GrownLog): Promise<readonly ListedUpload[]> {
  step(`Building and uploading: some minutes, fewer the next time (log: ${shown(join(data, 'logs'))})`);
  let ready = 0;
  while (ready < PROVIDERS.length) {
    for (const text of await news(log)) if (/^upload .* is ready: /.test(text)) ready += 1;
    await delay(LOOK_INTERVAL, undefined, { signal: interrupted.signal });
  }
  step('What there is now, and what comes next');
  for (const command of ['image-status', 'dib-image-list', 'image-list', 'plan']) {
    console.log(await builder(command));
  }
  const uploads = await listed<ListedUpload>('image-list');
  const providers = uploads.filter(({ state: is }) => is === 'ready').map(({ provider }) => provider);
  if (providers.toSorted().join() !== PROVIDERS.join()) {
    throw new Error(`the image is in ${providers.join() || 'no provider'}, not in ${PROVIDERS.join()}`);
  }
  return uploads;
}

/** Whether the image is a Debian, and the providers hold what was built. Resolves with the image-id. */
async function compare(uploads: readonly ListedUpload[]): Promise<string> {
  step('Comparing what was built with what was uploaded');
  const [{ 'image-id': imageId } = { 'image-id': '' }] = uploads;
  const raw = join(images, `${imageId}.raw`);
  tell(`made ${await describeDebian(raw)}`);
  for (const { 'external-id': externalId } of uploads) {
    const uploaded = join(served, externalId);
    const format = extname(externalId).slice(1);
    const { stdout: info } = await promisify(execFile)('qemu-img', ['info', uploaded]);
    console.log(info.trimEnd());
    // It fails if the two differ: nothing was lost on the way to the other format and the other place.
    await promisify(execFile)('qemu-img', ['compare', '-f', 'raw', '-F', format, raw, uploaded]);
    tell('it holds what was built (qemu-img compare)');
    if (format === extname(kept).slice(1)) await link(uploaded, kept);
  }
  return imageId;
}

/** The manager deletes in the providers and on disk, and forgets what is deleted. */
async function seeDeleted(log: GrownLog, admin: Admin, imageId: string): Promise<void> {
  const functions = [`image-upload:${imageId}`, `image-delete:${imageId}`];
  await offered(admin, functions, false);
  const left = await until(
    async () => [
      ...(await readdir(images)).filter((name) => !name.startsWith('.')),
      ...(await readdir(served)),
      ...(await listed('dib-image-list')),
      ...(await listed('image-list')),
    ],
    (found) => found.length === 0,
  );
  await news(log);
  if (left.length > 0) throw new Error(`this is still there: ${JSON.stringify(left)}`);
  tell(`nothing is left in ${shown(images)} and ${shown(served)}, nor in dib-image-list and image-list`);
  tell(`the job server has no worker for ${functions.join(' and ')} any more`);
}

/** Shows what the log tells of the manager and of the build since the last call; a failure ends it all. */
async function news(log: GrownLog): Promise<readonly string[]> {
  interrupted.signal.throwIfAborted();
  const found = (await log.newLines()).map(progressIn).filter((progress) => progress !== undefined);
  for (const { text } of found) tell(text);
  const failure = found.find(({ kind }) => kind === 'failure');
  if (failure === undefined) return found.map(({ text }) => text);
  throw new Error(`${failure.text}; see ${shown(daemonLog)} and ${shown(join(data, 'logs'))}`);
}

/** What a command lists. */
async function listed<T>(command: string): Promise<readonly T[]> {
  return JSON.parse(await run(command, '--json', '-c', config)) as readonly T[];
}

/** Runs a command of nodepool-builder as a person would, and returns what it prints on standard output. */
async function builder(command: string): Promise<string> {
  tell(`nodepool-builder ${command} -c ${shown(config)}`);
  return await run(command, '-c', config);
}

async function run(...args: readonly string[]): Promise<string> {
  const child = spawn(process.execPath, [nodepoolBuilder, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
    signal: interrupted.signal,
  });
  const [output, [code, signal]] = await Promise.all([readAll(child.stdout), once(child, 'exit')]);
  if (code === 0) return output.trim();
  throw new Error(
    `${args[0]} failed (${code ?? signal}); see ${shown(daemonLog)} and ${shown(join(data, 'logs'))}`,
  );
}

/** Waits until each function has a worker, or until none of them has. */
async function offered(admin: Admin, names: readonly string[], wanted: boolean): Promise<void> {
  const unsettled = await until(
    async () => {
      // Refused as long as the server does not listen yet.
      const known = await admin.status().catch((): FunctionStatus[] | undefined => undefined);
      if (known === undefined) return names;
      const held = new Set(
        known.filter(({ availableWorkers }) => availableWorkers > 0).map(({ name }) => name),
      );
      return names.filter((name) => held.has(name) !== wanted);
    },
    (left) => left.length === 0,
  );
  if (unsettled.length === 0) return;
  throw new Error(
    `the job server ${wanted ? 'has no worker' : 'still has a worker'} for ${unsettled.join(', ')}; see ${shown(daemonLog)}`,
  );
}

/** Asks again and again until the answer is good or time is up; returns the last answer. */
async function until<T>(ask: () => T | Promise<T>, good: (answer: T) => boolean): Promise<T> {
  for (
    const end = Date.now() + SETTLE_TIMEOUT;
    ;
    await delay(50, undefined, { signal: interrupted.signal })
  ) {
    const answer = await ask();
    if (good(answer) || Date.now() > end) return answer;
  }
}

function step(title: string): void {
  interrupted.signal.throwIfAborted();
  console.log(`\n==> ${title}`);
}

function tell(line: string): void {
  console.log(`    ${line}`);
}

/** A path as one would type it at the top of the project; anything else as it is. */
function shown(argument: string): string {
  return argument.startsWith(data) ? relative(root, argument) : argument;
}
