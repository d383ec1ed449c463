/**
 * Builds and runs the containers of examples/containers: `npm run containers`. They are built with buildah, on a base image
 * that is made with debootstrap, from packages that are published into a registry on loopback. Then a manager has a builder
 * build an image and upload it. The status is 0 if it was uploaded and all containers ended well.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, cp, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { freePort } from './free-port.ts';
import { installBaseSystem } from './fresh-machine/base-system.ts';
import { copyBaseSystem, copyNode } from './fresh-machine/machine.ts';
import { run } from './fresh-machine/run.ts';
import { publish, startRegistry } from './rehearse-release/registry.ts';

const checkout = join(import.meta.dirname, '..');
const containerfile = join(checkout, 'examples/containers/Containerfile');
const cache = join(checkout, '.cache/fresh-machine');
const directory = join(cache, `containers-${process.pid}`);
const site = join(directory, 'site');
const storage = join(directory, 'storage/overlay');

/** Milliseconds until the image is uploaded. */
const TIMEOUT = 60_000;

const STORAGE = [
  '--storage-driver=overlay',
  `--root=${join(directory, 'storage')}`,
  `--runroot=${join(directory, 'run')}`,
];
/** Needs no runtime for containers, and no systemd. */
const ISOLATION = '--isolation=chroot';

if (process.getuid?.() !== 0) {
  console.error('containers: the base image needs root; run it with sudo');
  process.exit(1);
}

await mkdir(directory, { recursive: true, mode: 0o700 });
try {
  const registry = await startRegistry(join(checkout, '.cache/verdaccio'), directory, await freePort());
  try {
    await publish(registry.url, checkout, directory);
    await makeBase(registry.url);
    for (const target of ['manager', 'builder']) {
      const options = [ISOLATION, '--layers', '--build-arg=BASE=localhost/base', `--target=${target}`];
      await buildah('bud', ...options, `--tag=localhost/${target}`, `--file=${containerfile}`, directory);
    }
  } finally {
    await registry[Symbol.asyncDispose]();
  }
  await serve();
  console.log('containers: the manager had the builder build an image and upload it');
} finally {
  // buildah binds its storage to itself.
  if (await isMounted(storage)) await run('umount', [storage]);
  await rm(directory, { recursive: true, force: true });
}

async function isMounted(path: string): Promise<boolean> {
  return (await readFile('/proc/self/mountinfo', 'utf8'))
    .split('\n')
    .some((line) => line.split(' ')[4] === path);
}

async function buildah(command: string, ...args: readonly string[]): Promise<void> {
  await run('buildah', [...STORAGE, command, ...args]);
}

/** Makes an image like those of Node.js: a Debian with Node and npm, and with the registries of this machine. */
async function makeBase(url: string): Promise<void> {
  const root = join(directory, 'root');
  const settings = await copyBaseSystem(await installBaseSystem(cache), root);
  copyNode(root);
  await cp(process.execPath, join(root, 'usr/local/bin/node')); // that of this machine may be too old
  await run('tar', ['-C', root, '-cf', join(directory, 'root.tar'), '.']);
  const variables = Object.entries({ ...settings, npm_config_registry: url });
  const environment = variables.map(([name, value]) => `ENV ${name}=${JSON.stringify(value)}\n`).join('');
  const file = join(directory, 'Base');
  await writeFile(file, `FROM scratch\nADD root.tar /\n${environment}`);
  await buildah('bud', ISOLATION, '--tag=localhost/base', `--file=${file}`, directory);
}

/** Runs a job server, the manager and the builder until the image is uploaded. */
async function serve(): Promise<void> {
  const port = await freePort();
  for (const name of ['etc', 'images', 'pool', 'state']) await mkdir(join(site, name), { recursive: true });
  // The manager's user writes here. Others do not reach it: the directory of all this is only for root.
  await chmod(join(site, 'state'), 0o777);
  const configuration = {
    'images-dir': '/site/images',
    'gearman-servers': [{ host: '127.0.0.1', port }],
    manager: { store: '/site/state/manager.sqlite' },
    diskimages: [
      {
        name: 'docs',
        builder: 'command',
        command: ['mke2fs', '-q', '-t', 'ext4', '-d', '/etc/apt', '{output.raw}', '16M'],
      },
    ],
    providers: [
      {
        name: 'local',
        type: 'directory',
        directory: '/site/pool',
        images: [{ name: 'docs', diskimage: 'docs' }],
      },
    ],
  };
  await writeFile(join(site, 'etc/nodepool.yaml'), JSON.stringify(configuration));
  const containers: Container[] = [];
  try {
    containers.push(await start('manager', ['gearmand', '-L', '127.0.0.1', '-p', `${port}`]));
    containers.push(await start('builder'), await start('manager'));
    await uploaded();
  } finally {
    for (const container of containers.toReversed()) await container.stop();
  }
}

async function uploaded(): Promise<void> {
  for (const end = performance.now() + TIMEOUT; ; await delay(200)) {
    if ((await readdir(join(site, 'pool'))).some((name) => name.endsWith('.json'))) return;
    if (performance.now() > end) throw new Error(`no image was uploaded within ${TIMEOUT / 1000} s`);
  }
}

interface Container {
  stop(): Promise<void>;
}

/** Starts the command of an image, or another one of nodepool-builder. */
async function start(image: string, command?: readonly string[]): Promise<Container> {
  const { stdout: id } = await promisify(execFile)('buildah', [...STORAGE, 'from', `localhost/${image}`]);
  const { stdout } = await promisify(execFile)('buildah', [...STORAGE, 'inspect', id.trim()]);
  const { config } = (JSON.parse(stdout) as { OCIv1: { config: { Entrypoint: string[]; Cmd: string[] } } })
    .OCIv1;
  const words = [...config.Entrypoint, ...(command ?? config.Cmd)];
  const volumes = [`--volume=${site}:/site`, `--volume=${join(site, 'etc')}:/etc/nodepool:ro`];
  const child = spawn('buildah', [...STORAGE, 'run', ISOLATION, ...volumes, id.trim(), '--', ...words], {
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const exit = once(child, 'exit');
  return {
    stop: async () => {
      // buildah passes no signals on.
      for (const pid of await programsOf(child)) process.kill(pid, 'SIGTERM');
      const [code] = (await exit) as [number | null];
      if (code !== 0) throw new Error(`the container ${image} ended with ${code}`);
    },
  };
}

/** Ids of the processes of a container: the descendants of buildah that run Node.js. */
async function programsOf({ pid }: ChildProcess): Promise<number[]> {
  const { stdout } = await promisify(execFile)('ps', ['-eo', 'pid=,ppid=,args=']);
  const rows = stdout
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/\s+/));
  const childrenOf = (parent: string): string[] =>
    rows
      .filter(([, ppid]) => ppid === parent)
      .flatMap(([id = '', , program]) => [...(program === 'node' ? [id] : []), ...childrenOf(id)]);
  return childrenOf(String(pid)).map(Number);
}
