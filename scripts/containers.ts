/**
 * Builds and runs the containers in examples/containers: `npm run containers`. buildah builds them on a base image
 * created with debootstrap, from packages that are published to a registry on loopback. Then a manager makes a builder
 * build and upload an image. Exits with 0 if it was uploaded and all containers ended cleanly.
 *
 * An ordinary user, nobody, builds and runs them if the kernel and the machine's settings permit. Otherwise root does,
 * and this prints what prevented the user.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, copyFile, cp, mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { freePort } from './free-port.ts';
import { CHECKOUT, installBaseSystem, openMachineDirectory } from './fresh-machine/base-system.ts';
import { copyBaseSystem, copyNode } from './fresh-machine/machine.ts';
import { run } from './fresh-machine/run.ts';
import { publishHead } from './rehearse-release/registry.ts';

await using directory = await openMachineDirectory('containers');
/** Home of the user who builds and runs the containers, who sees it as /mnt. */
const home = join(directory.path, 'home');
const site = join(home, 'site');

/** Timeout in milliseconds until the image is uploaded. */
const TIMEOUT = 60_000;

const STORAGE = ['--storage-driver=overlay', '--root=/mnt/storage', '--runroot=/mnt/run'];
/** Options of buildah that require neither a container runtime nor systemd. */
const ISOLATION = '--isolation=chroot';

await mkdir(home);
// Ids that usually nobody else has. They own files only below `home`.
await writeFile(join(home, 'subordinate-ids'), 'nobody:1879048192:65536\n');
await copyFile(join(CHECKOUT, 'examples/containers/Containerfile'), join(home, 'Containerfile'));
await mkdir(join(home, 'run'));
await run('chown', ['-R', 'nobody:', home]);
const user = await permittedUser();
{
  await using registry = await publishHead(directory.path);
  await makeBase(registry.url);
  for (const target of ['manager', 'builder']) {
    const options = [ISOLATION, '--layers', '--build-arg=BASE=localhost/base', `--target=${target}`];
    await run(...buildah(user, 'bud', ...options, `--tag=localhost/${target}`, '/mnt'));
  }
}
await serve();
console.log(`containers: as ${user}, the manager had the builder build an image and upload it`);

/** Returns the ordinary user if that can build containers, otherwise root. */
async function permittedUser(): Promise<'nobody' | 'root'> {
  try {
    // Files of a container's other users need subordinate ids. Without them, buildah only warns.
    await promisify(execFile)(...buildah('nobody', 'unshare', 'sh', '-c', 'chown 1:1 run && chown 0:0 run'));
    return 'nobody';
  } catch (error) {
    const { stderr } = error as { stderr: string };
    console.log(`containers: an ordinary user cannot build them on this machine, so root does:\n${stderr}`);
    return 'root';
  }
}

/** Returns a command line that runs buildah as a user. */
function buildah(account: string, ...args: readonly string[]): [string, string[]] {
  const enter = join(import.meta.dirname, 'containers/enter.sh');
  return ['unshare', ['--mount', 'sh', enter, account, home, 'buildah', ...STORAGE, ...args]];
}

/** Creates an image like those of Node.js: Debian with Node and npm, and with this machine's registries. */
async function makeBase(url: string): Promise<void> {
  const root = join(directory.path, 'root');
  const settings = await copyBaseSystem(await installBaseSystem(), root);
  copyNode(root);
  await cp(process.execPath, join(root, 'usr/local/bin/node')); // this machine's own Node may be too old
  await run('tar', ['-C', root, '-cf', join(home, 'root.tar'), '.']);
  const variables = Object.entries({ ...settings, npm_config_registry: url });
  const environment = variables.map(([name, value]) => `ENV ${name}=${JSON.stringify(value)}\n`).join('');
  await writeFile(join(home, 'Base'), `FROM scratch\nADD root.tar /\n${environment}`);
  await run(...buildah(user, 'bud', ISOLATION, '--tag=localhost/base', '--file=/mnt/Base', '/mnt'));
  await rm(join(home, 'root.tar'));
}

/** Runs a job server, the manager and the builder until the image is uploaded. */
async function serve(): Promise<void> {
  const port = await freePort();
  for (const name of ['etc', 'images', 'pool', 'state']) await mkdir(join(site, name), { recursive: true });
  // The manager's user writes here. Others cannot reach it, because only one user can access its parent directory.
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
  await run('chown', ['-R', `${user}:`, site]);
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

/** Starts the command of an image, or another nodepool-builder command. */
async function start(image: string, command?: readonly string[]): Promise<Container> {
  const { stdout: id } = await promisify(execFile)(...buildah(user, 'from', `localhost/${image}`));
  const { stdout } = await promisify(execFile)(...buildah(user, 'inspect', id.trim()));
  const { config } = (JSON.parse(stdout) as { OCIv1: { config: { Entrypoint: string[]; Cmd: string[] } } })
    .OCIv1;
  const words = [...config.Entrypoint, ...(command ?? config.Cmd)];
  const volumes = ['--volume=/mnt/site:/site', '--volume=/mnt/site/etc:/etc/nodepool:ro'];
  const child = spawn(...buildah(user, 'run', ISOLATION, ...volumes, id.trim(), '--', ...words), {
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const exit = once(child, 'exit');
  return {
    stop: async () => {
      // buildah does not forward signals.
      for (const pid of await programsOf(child)) process.kill(pid, 'SIGTERM');
      const [code] = (await exit) as [number | null];
      if (code !== 0) throw new Error(`the container ${image} ended with ${code}`);
    },
  };
}

/** Returns the process ids of a container: the descendants of buildah that run Node.js. */
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
