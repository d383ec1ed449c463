/**
 * Builds an image on a running machine, from end to end: `npm run example:on-instance`. nodepool-builder boots the
 * Debian image of the quickstart under QEMU, sets it up over SSH, captures it and uploads it. The image is then booted
 * to show its changes. Exits with 0 only if every step succeeded.
 */
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { exampleConfiguration } from './example-configuration.ts';
import { freePort } from './free-port.ts';
import { prepareBaseImage } from './on-instance/base-image.ts';
import { runInImage } from './on-instance/boot.ts';
import { instanceProgressIn } from './on-instance/progress.ts';
import { describeDebian } from './quickstart/debian-image.ts';
import { requireSpace } from './quickstart/machine.ts';
import { Session } from './quickstart/session.ts';

const root = join(import.meta.dirname, '..');
const template = join(root, 'examples/on-instance/nodepool.yaml');
const data = join(root, 'quickstart-data/on-instance');
const base = join(data, 'base');
const images = join(data, 'images');
const served = join(data, 'served');

/** Command that prints the changes from setup and step, which only the customised image contains. */
const LOOK = 'cat /etc/image-name /etc/motd && id -un zuul';
const CHANGE = 'debian-node\nA node for zuul, made on a running machine\nzuul\n';

await Session.run({ name: 'example:on-instance', data, progressIn: instanceProgressIn }, example);

async function example(session: Session): Promise<void> {
  session.step('Getting the base image, a Debian of diskimage-builder');
  await rm(data, { recursive: true, force: true });
  for (const directory of [images, served]) await mkdir(directory, { recursive: true });
  await requireSpace(data);
  const baseImage = await prepareBaseImage(session, base);
  session.tell(`${session.shown(baseImage)}: ${await describeDebian(baseImage)}`);
  const machine = { port: await freePort(), command: 'npm run example:on-instance' };
  await writeFile(session.config, exampleConfiguration(await readFile(template, 'utf8'), template, machine));
  await session.serve(async () => {
    session.step('Customising it on a machine under QEMU: some minutes where there is no KVM');
    session.tell('Waiting for the upload of the result:');
    await session.uploadsReady(1);
    for (const command of ['image-status', 'image-list']) await session.show(command);
  });
  const left = await orphans();
  if (left.length > 0) throw new Error(`the example left behind:\n${left.join('\n')}`);
  session.tell('no machine is left, and no file of its disk');
  const uploaded = join(served, 'debian-node-latest.qcow2');
  await show(session, uploaded);
  session.step('Done');
  session.tell(`The customised image is ${session.shown(uploaded)}.`);
}

/** Returns remaining machines and their records. */
async function orphans(): Promise<string[]> {
  const workspace = join(images, '.nodepool-builder');
  const directories = (await readdir(workspace)).filter((name) => /^(?:qemu-|instances$)/.test(name));
  const found = await Promise.all(
    directories.map(async (name) => (await readdir(join(workspace, name))).map((entry) => join(name, entry))),
  );
  return found.flat();
}

async function show(session: Session, image: string): Promise<void> {
  session.step('Booting the customised image; waiting until SSH responds: up to a minute');
  const options = { image, kernel: join(base, 'vmlinuz'), initrd: join(base, 'initrd'), directory: data };
  session.tell(`root@${session.shown(image)}: ${LOOK}`);
  const said = await runInImage({ ...options, signal: session.signal }, LOOK);
  for (const line of said.trimEnd().split('\n')) session.tell(line);
  if (said !== CHANGE) throw new Error(`the image does not show what was done to it:\n${CHANGE}`);
}
