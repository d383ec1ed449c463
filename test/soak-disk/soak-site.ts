import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { freePort } from '../../scripts/free-port.ts';
import { type BuilderProcess, programCommand, spawnDaemon } from '../fixtures/builder-process.ts';
import { type Account, cloudsYaml } from '../fixtures/openstack/account.ts';
import { SmallDisk } from './small-disk.ts';

/** Size of each disk in megabytes: enough for a few images, their staging and a copy. */
const DISK_SIZE = 96;

const PROGRAM = join(import.meta.dirname, 'soak-builder.ts');

const IMAGES = ['debian', 'fedora', 'ubuntu'] as const;

/** Good images that each provider and images-dir keep. */
export const KEEP = 2;

/** Seconds between builds, so few that work is always in progress. */
const OFTEN = 8;
const NEVER = 86_400;

/** A record as a list command prints it. */
export type ListedRecord = Readonly<Record<string, string | null>>;

/** One host: a daemon `--all-in-one` with images-dir and two directory providers on separate disks, and a cloud. */
export class DiskSoakSite {
  readonly images: readonly string[] = IMAGES;
  readonly imagesDir: SmallDisk;
  readonly pools: readonly SmallDisk[];
  readonly account: Account;
  readonly port: number;
  readonly #directory: string;
  #daemon: BuilderProcess | undefined;

  private constructor(
    directory: string,
    disks: readonly [SmallDisk, ...SmallDisk[]],
    account: Account,
    port: number,
  ) {
    [this.imagesDir, ...this.pools] = disks;
    this.#directory = directory;
    this.account = account;
    this.port = port;
  }

  static async create(account: Account): Promise<DiskSoakSite> {
    const directory = await mkdtemp(join(tmpdir(), 'disk-soak-'));
    const disks: SmallDisk[] = [];
    try {
      for (const name of ['images', 'east', 'west']) {
        disks.push(await SmallDisk.create(join(directory, name), DISK_SIZE));
      }
      const site = new DiskSoakSite(
        directory,
        disks as [SmallDisk, ...SmallDisk[]],
        account,
        await freePort(),
      );
      await mkdir(join(directory, 'state'));
      await writeFile(join(directory, 'clouds.yaml'), cloudsYaml({ glance: account.cloud() }));
      await site.setClock(0);
      await site.#configure(OFTEN);
      return site;
    } catch (error) {
      for (const disk of disks) await disk.remove();
      await rm(directory, { recursive: true, force: true });
      throw error;
    }
  }

  get config(): string {
    return join(this.#directory, 'nodepool.yaml');
  }

  get disks(): readonly SmallDisk[] {
    return [this.imagesDir, ...this.pools];
  }

  /** Log lines of the running daemon. */
  get log(): readonly string[] {
    return this.#daemon?.log ?? [];
  }

  /** @param milliseconds time by which the daemon's clock is ahead; negative: behind */
  async setClock(milliseconds: number): Promise<void> {
    const file = join(this.#directory, 'clock');
    await writeFile(`${file}.new`, String(milliseconds));
    await rename(`${file}.new`, file);
  }

  /** Disables scheduled rebuilds when the daemon starts next. */
  async stopRebuilding(): Promise<void> {
    await this.#configure(NEVER);
  }

  /** Starts the daemon without waiting until it serves. */
  start(): void {
    const [node, args] = programCommand(PROGRAM, '-d', '--all-in-one', '-c', this.config);
    const clock = pathToFileURL(join(import.meta.dirname, 'shifted-clock.ts')).href;
    const environment = [
      `OS_CLIENT_CONFIG_FILE=${join(this.#directory, 'clouds.yaml')}`,
      `SOAK_CLOCK=${join(this.#directory, 'clock')}`,
    ];
    this.#daemon = spawnDaemon(['env', [...environment, node, '--import', clock, ...args]]);
  }

  /** Sends the daemon a signal. */
  signal(signal: NodeJS.Signals): void {
    this.#daemon?.child.kill(signal);
  }

  /** Ends the daemon. */
  async end(signal: NodeJS.Signals): Promise<void> {
    await this.#daemon?.end(signal);
  }

  /** Returns the records of a list command. */
  async list(command: string): Promise<readonly ListedRecord[]> {
    return JSON.parse(await this.#command(command, '--json')) as ListedRecord[];
  }

  async remove(): Promise<void> {
    await this.end('SIGKILL');
    for (const disk of this.disks) await disk.remove();
    await rm(this.#directory, { recursive: true, force: true });
  }

  async #command(...args: readonly string[]): Promise<string> {
    const command = programCommand(PROGRAM, ...args, '-c', this.config);
    return (await promisify(execFile)(...command)).stdout;
  }

  async #configure(rebuildAge: number): Promise<void> {
    const images = IMAGES.map((name) => ({ name, diskimage: name, 'min-ram': 1 }));
    const pools = this.pools.map(({ directory }, index) => ({
      name: `pool-${index + 1}`,
      type: 'directory',
      directory,
      'image-type': 'raw',
      images,
    }));
    const settings = {
      'images-dir': this.imagesDir.directory,
      'gearman-servers': [{ host: '127.0.0.1', port: this.port }],
      manager: {
        store: join(this.#directory, 'state', 'manager.sqlite'),
        'retry-delay': 1,
        'max-retry-delay': 5,
        'orphan-scan-interval': 5,
        // A build whose files a killed daemon has removed counts as deleted after this time.
        'absence-timeout': 30,
      },
      diskimages: IMAGES.map((name) => ({ name, builder: 'sealed', 'rebuild-age': rebuildAge, keep: KEEP })),
      providers: [...pools, { name: 'glance', cloud: 'glance', 'image-type': 'raw', rate: 0.05, images }],
    };
    await writeFile(this.config, JSON.stringify(settings));
  }
}
