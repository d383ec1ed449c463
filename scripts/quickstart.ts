/**
 * The main job from end to end, on real input: `npm run quickstart`. Starts the nodepool-builder daemon with
 * its embedded job server, has it build a Debian image, uploads it to a directory, deletes the original, and
 * verifies each step. Exits with 0 only if every step happened.
 */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { access, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { Admin, type FunctionStatus } from '@nodepool-builder/gearman-node';
import { freePort } from './free-port.ts';
import { quickstartConfiguration } from './quickstart/configuration.ts';
import { Daemon } from './quickstart/daemon.ts';
import { describeDebian } from './quickstart/debian-image.ts';
import { findLeftovers, processIds } from './quickstart/leftovers.ts';
import { availableDebian, requireSpace, requireSudo } from './quickstart/machine.ts';

const root = join(import.meta.dirname, '..');
const nodepoolBuilder = join(root, 'node_modules/.bin/nodepool-builder');
const template = join(root, 'examples/quickstart/nodepool.yaml');
const data = join(root, 'quickstart-data');
const images = join(data, 'images');
const served = join(data, 'served');
const config = join(data, 'nodepool.yaml');
const daemonLog = join(data, 'daemon.log');

/** How long what should be so in a moment may take, in milliseconds. */
const SETTLE_TIMEOUT = 15_000;

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
  // What was uploaded before: one image is enough.
  await rm(served, { recursive: true, force: true });
  await mkdir(served);
  const settings = { port, debian, cacheDirectory: join(data, 'cache') };
  await writeFile(config, quickstartConfiguration(await readFile(template, 'utf8'), template, settings));
  tell(`Debian ${debian.release} from ${debian.mirror}; configuration in ${shown(config)}`);

  step('Starting the daemon with the embedded job server');
  const args = ['-d', '--embedded-gearmand', '-c', config];
  tell(`nodepool-builder ${args.map(shown).join(' ')}    (log: ${shown(daemonLog)})`);
  const daemon = new Daemon({
    command: [process.execPath, nodepoolBuilder, ...args],
    logFile: daemonLog,
    onLost: (ending) =>
      interrupted.abort(new Error(`the daemon ended by itself (${ending}); see ${shown(daemonLog)}`)),
  });
  const admin = new Admin({ host: '127.0.0.1', port });
  let uploaded: string;
  try {
    await offered(admin, ['image-build:debian'], true);
    uploaded = await buildUploadDelete(admin);
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
  console.log(`\nDone. A Debian disk image lies at ${uploaded}`);
}

/** The three jobs. Resolves with the path of the uploaded image. */
async function buildUploadDelete(admin: Admin): Promise<string> {
  step(`Building: some minutes, fewer the next time (log: ${shown(join(data, 'logs'))})`);
  const imageId = await builder('image-build', 'debian');
  const functions = [`image-upload:${imageId}`, `image-delete:${imageId}`];
  await offered(admin, functions, true);
  const raw = join(images, `${imageId}.raw`);
  const qcow2 = join(images, `${imageId}.qcow2`);
  await access(qcow2);
  tell(`made ${await describeDebian(raw)}`);
  console.log(await builder('image-list'));

  step('Uploading');
  const uploaded = join(served, await builder('image-upload', imageId, '--provider', 'local'));
  const { stdout: info } = await promisify(execFile)('qemu-img', ['info', uploaded]);
  console.log(info.trimEnd());
  // It fails if the two differ: nothing was lost on the way to the other format and the other place.
  await promisify(execFile)('qemu-img', ['compare', '-f', 'raw', '-F', 'qcow2', raw, uploaded]);
  tell('it holds what was built (qemu-img compare)');

  step('Deleting the image; what was uploaded stays');
  await builder('image-delete', imageId);
  await offered(admin, functions, false);
  const left = (await readdir(images)).filter((name) => name.startsWith(imageId));
  if (left.length > 0) throw new Error(`${left.join(', ')} is still in ${shown(images)}`);
  await access(uploaded);
  tell(`the job server has no worker for ${functions.join(' and ')} any more`);
  return uploaded;
}

/** Runs a command of nodepool-builder as a person would, and returns what it prints on standard output. */
async function builder(...args: readonly string[]): Promise<string> {
  tell(`nodepool-builder ${args.join(' ')} -c ${shown(config)}`);
  const child = spawn(process.execPath, [nodepoolBuilder, ...args, '-c', config], {
    stdio: ['ignore', 'pipe', 'inherit'],
    signal: interrupted.signal,
  });
  const [output, [code, signal]] = await Promise.all([text(child.stdout), once(child, 'exit')]);
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
