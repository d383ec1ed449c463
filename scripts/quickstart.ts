/**
 * Runs the main job from end to end, on real input: `npm run quickstart`. Starts `nodepool-builder --all-in-one`, which
 * builds a Debian image and uploads it to two providers by itself. Then removes the image from the configuration, so
 * that the daemon deletes it everywhere. Verifies each step, and exits with 0 only if every step succeeded. A copy of
 * the image remains, with a program that boots it. With --login, the image is booted at the end, and the login is
 * tested.
 */
import { execFile } from 'node:child_process';
import { link, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { promisify, stripVTControlCharacters } from 'node:util';
import { Admin, type FunctionStatus } from '@nodepool-builder/gearman-node';
import { startDebianProxy } from './debian-proxy.ts';
import { freePort } from './free-port.ts';
import { LOGIN, logIn, writeBootProgram } from './quickstart/boot.ts';
import { quickstartConfiguration, withoutImages } from './quickstart/configuration.ts';
import { describeDebian } from './quickstart/debian-image.ts';
import { requireSpace, requireSudo } from './quickstart/machine.ts';
import { progressIn } from './quickstart/progress.ts';
import { Session } from './quickstart/session.ts';

const root = join(import.meta.dirname, '..');
const template = join(root, 'examples/quickstart/nodepool.yaml');
const data = join(root, 'quickstart-data');
const images = join(data, 'images');
const served = join(data, 'served');
const state = join(data, 'state');
/** Copy of the uploaded image for the user, because nodepool-builder deletes everything at the end. */
const kept = join(data, 'debian.qcow2');
const bootProgram = join(data, 'boot-debian');

/** Providers of the configuration that receive the image. */
const PROVIDERS = ['local', 'local-raw'];

/** Keys of an `image-list --json` entry that are read here. */
interface ListedUpload {
  readonly 'image-id': string;
  readonly 'external-id': string;
  readonly provider: string;
  readonly state: string;
}

const withLogin = process.argv.includes('--login');

await Session.run({ name: 'quickstart', data, progressIn }, quickstart);

async function quickstart(session: Session): Promise<void> {
  session.step('Looking at this machine');
  await requireSudo();
  await mkdir(images, { recursive: true });
  await requireSpace(data);
  await using proxy = await startDebianProxy();
  const port = await freePort();
  // Removes files of an earlier run, except downloads.
  for (const left of [served, state, kept]) await rm(left, { recursive: true, force: true });
  await mkdir(served);
  const settings = { port, proxy: proxy.url, cacheDirectory: join(data, 'cache') };
  const configuration = quickstartConfiguration(await readFile(template, 'utf8'), template, settings);
  await writeFile(session.config, configuration);
  session.tell(`The configuration is in ${session.shown(session.config)}`);
  const admin = new Admin({ host: '127.0.0.1', port });
  try {
    await session.serve(async () => {
      const uploads = await buildAndUpload(session);
      const imageId = await compare(session, uploads);
      session.step('Removing the image from the configuration; waiting until it is deleted everywhere');
      await writeFile(session.config, withoutImages(configuration));
      session.reload();
      await seeDeleted(session, admin, imageId);
    });
  } finally {
    await admin.close();
  }
  if (withLogin) await showLogin(session);
  session.step('Done');
  session.tell(`A copy of the Debian disk image is ${session.shown(kept)}.`);
  session.tell(`Log in as "${LOGIN.user}" with the password "${LOGIN.password}". Ctrl-A X ends it.`);
  session.tell(`If nothing appears within a minute, KVM hangs on this machine: add "tcg".`);
  session.tell(`Boot it:\n\n    ${session.shown(bootProgram)}`);
}

/** Boots the image as the printed instructions say, and logs in. */
async function showLogin(session: Session): Promise<void> {
  session.step('Booting the image under QEMU without KVM; waiting for its login: about a minute');
  const console: string[] = [];
  const onLine = (line: string): void => {
    console.push(stripVTControlCharacters(line));
    session.goesOn(line);
  };
  const version = await logIn(bootProgram, 'cat /etc/debian_version', onLine, session.signal).catch(
    (error: unknown) => {
      for (const line of console.slice(-30)) session.tell(line);
      throw error;
    },
  );
  if (!/^\d/.test(version)) throw new Error(`the login works, but /etc/debian_version is "${version}"`);
  session.success(`logged in as ${LOGIN.user}: this is Debian ${version}`);
}

/** Waits for the uploads, which start without a request. Resolves with the images in the providers. */
async function buildAndUpload(session: Session): Promise<readonly ListedUpload[]> {
  const logs = session.shown(join(data, 'logs'));
  session.step('Building the image and uploading it to two directories: some minutes, fewer the next time');
  session.tell(`The whole output is in ${logs}. Waiting for both uploads:`);
  await session.uploadsReady(PROVIDERS.length);
  session.step('What is there now, and what comes next');
  for (const command of ['image-status', 'dib-image-list', 'image-list', 'plan']) await session.show(command);
  const uploads = await session.listed<ListedUpload>('image-list');
  const providers = uploads.filter(({ state: is }) => is === 'ready').map(({ provider }) => provider);
  if (providers.toSorted().join() !== PROVIDERS.join()) {
    throw new Error(`the image is in ${providers.join() || 'no provider'}, not in ${PROVIDERS.join()}`);
  }
  return uploads;
}

/** Verifies that the image is a Debian and the same in all providers. Resolves with the image id. */
async function compare(session: Session, uploads: readonly ListedUpload[]): Promise<string> {
  session.step('Comparing the image with both uploads');
  const [{ 'image-id': imageId } = { 'image-id': '' }] = uploads;
  const raw = join(images, `${imageId}.raw`);
  session.success(await describeDebian(raw));
  for (const { 'external-id': externalId } of uploads) {
    const uploaded = join(served, externalId);
    const format = extname(externalId).slice(1);
    const file = session.shown(uploaded);
    const { stdout: info } = await promisify(execFile)('qemu-img', ['info', file], { cwd: root });
    // The name, format and sizes come first.
    for (const line of info.split('\n', 4)) session.tell(line);
    // Fails if they differ.
    await promisify(execFile)('qemu-img', ['compare', '-f', 'raw', '-F', format, raw, uploaded]);
    session.success('its content equals the image (qemu-img compare)');
    if (format === extname(kept).slice(1)) await link(uploaded, kept);
  }
  await writeBootProgram(data, raw);
  return imageId;
}

/** Waits until the manager has deleted the image from the providers and from disk, with its records. */
async function seeDeleted(session: Session, admin: Admin, imageId: string): Promise<void> {
  const functions = [`image-upload:${imageId}`, `image-delete:${imageId}`];
  await notOffered(session, admin, functions);
  const left = await session.until(
    async () => [
      ...(await readdir(images)).filter((name) => !name.startsWith('.')),
      ...(await readdir(served)),
      ...(await session.listed('dib-image-list')),
      ...(await session.listed('image-list')),
    ],
    (found) => found.length === 0,
  );
  await session.news();
  if (left.length > 0) throw new Error(`not everything was deleted: ${JSON.stringify(left)}`);
  session.success(`no file is left in ${session.shown(images)} and ${session.shown(served)}`);
  session.success('dib-image-list and image-list are empty, and no builder offers the image');
}

/** Waits until no worker offers any of the functions. */
async function notOffered(session: Session, admin: Admin, names: readonly string[]): Promise<void> {
  const held = await session.until(
    async () => {
      const known: readonly FunctionStatus[] = await admin.status();
      const offered = known.filter(({ availableWorkers }) => availableWorkers > 0).map(({ name }) => name);
      return names.filter((name) => offered.includes(name));
    },
    (left) => left.length === 0,
  );
  if (held.length === 0) return;
  throw new Error(
    `the job server still has a worker for ${held.join(', ')}; see ${session.shown(session.daemonLog)}`,
  );
}
