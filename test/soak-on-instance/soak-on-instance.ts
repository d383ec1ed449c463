import { setTimeout as delay } from 'node:timers/promises';
import { Admin, Client } from '@nodepool-builder/gearman-node';
import { type BuilderProcess, startBuilder } from '../fixtures/builder-process.ts';
import { type Gearmand, startGearmand } from '../fixtures/gearmand.ts';
import { createMiniLinuxSite, type MiniLinuxSite } from '../fixtures/mini-linux-site.ts';
import { waitUntil } from '../fixtures/wait-until.ts';
import { BuildStages, type KillMoment, WatchedBuild } from './build-stages.ts';
import { type InstanceOrphans, instanceOrphans, isEmpty, phaseOf } from './instance-orphans.ts';
import { moments } from './moments.ts';

/** Step of the build that takes a moment, during which kills may happen. */
const ON_INSTANCE = { steps: ['sleep 0.5', 'echo made > /etc/made; sleep 0.5'] };

/** Every fourth job is submitted again and resumed. The others must leave nothing behind. */
const COMES_AGAIN_EVERY = 4;

/** Options. */
export interface InstanceSoakPlan {
  readonly kills: number;
  /** Seed for the times of the kills. */
  readonly seed: number;
}

/** One kill of the builder. */
export interface InstanceKill extends KillMoment {
  /** Phase in the record at that time; undefined without a record. */
  readonly found: string | undefined;
  /** True if the job was submitted again. */
  readonly comesAgain: boolean;
  /** Milliseconds from the start of the next builder until no orphans remained. */
  readonly settled: number;
}

/** Disk images by what happens to their job after a kill. */
const DISKIMAGES = {
  forgotten: { 'on-instance': ON_INSTANCE },
  resumed: { 'on-instance': { ...ON_INSTANCE, 'after-restart': 'resume' } },
};

/**
 * Repeatedly kills and restarts a builder while it builds images on local QEMU machines.
 *
 * @returns the kills, if nothing was left and no job failed
 * @throws Error if an orphan is left, or if a resubmitted job fails
 */
export async function soakOnInstance(
  { kills, seed }: InstanceSoakPlan,
  onKill: (kill: InstanceKill) => void,
  signal: AbortSignal,
): Promise<readonly InstanceKill[]> {
  const server = await startGearmand();
  try {
    const site = await createMiniLinuxSite(server.port, DISKIMAGES);
    const soak = new InstanceSoak(server, site, await startBuilder(site.config));
    try {
      const stages = await soak.buildUndisturbed();
      const done: InstanceKill[] = [];
      for (const [index, part] of moments(kills, seed).entries()) {
        signal.throwIfAborted();
        const comesAgain = index % COMES_AGAIN_EVERY === 1;
        done.push(await soak.kill(`killed-${index}`, stages.moment(part), comesAgain));
        onKill(done.at(-1) as InstanceKill);
      }
      return done;
    } finally {
      await soak.close();
      await site.remove();
    }
  } finally {
    await server.stop();
  }
}

class InstanceSoak {
  readonly #server: Gearmand;
  readonly #site: MiniLinuxSite;
  #builder: BuilderProcess;

  constructor(server: Gearmand, site: MiniLinuxSite, builder: BuilderProcess) {
    this.#server = server;
    this.#site = site;
    this.#builder = builder;
  }

  /** Returns how long each phase takes. */
  async buildUndisturbed(): Promise<BuildStages> {
    const stages = await this.#withClient((client) => {
      const job = client.submit('image-build:forgotten', argument('undisturbed'));
      return BuildStages.watch(this.#site.images, 'undisturbed', job);
    });
    await this.#untilNothingIsLeft();
    return stages;
  }

  async kill(imageId: string, moment: KillMoment, comesAgain: boolean): Promise<InstanceKill> {
    const { config, images } = this.#site;
    return await this.#withClient(async (client) => {
      const job = client.submit(`image-build:${comesAgain ? 'resumed' : 'forgotten'}`, argument(imageId));
      const over = Promise.allSettled([job]);
      await job.handle;
      await new WatchedBuild(images, imageId, over).until(moment.phase);
      await delay(moment.milliseconds); // the time of the kill is varied, so no event exists
      if (!comesAgain) await client.close(); // gearmand drops a foreground job without a client
      await this.#builder.end('SIGKILL');
      const phase = await phaseOf(images, imageId);
      const start = performance.now();
      this.#builder = await startBuilder(config);
      await (comesAgain ? job : over);
      await this.#untilNothingIsLeft();
      await this.#untilNoJobIsLeft();
      return { ...moment, found: phase, comesAgain, settled: performance.now() - start };
    });
  }

  async close(): Promise<void> {
    await this.#builder.end('SIGTERM');
  }

  async #withClient<T>(work: (client: Client) => PromiseLike<T>): Promise<T> {
    const client = new Client({ servers: [{ host: '127.0.0.1', port: this.#server.port }] });
    try {
      return await work(client);
    } finally {
      await client.close();
    }
  }

  async #untilNothingIsLeft(): Promise<void> {
    const { directory, images } = this.#site;
    let orphans: InstanceOrphans | undefined;
    const isGone = async (): Promise<boolean> => {
      orphans = await instanceOrphans(directory, images);
      return isEmpty(orphans);
    };
    await waitUntil('QEMU, overlays, the ledger and partial images to disappear', isGone).catch((cause) => {
      throw new Error(`orphans are left: ${JSON.stringify(orphans)}`, { cause });
    });
  }

  async #untilNoJobIsLeft(): Promise<void> {
    const admin = new Admin({ host: '127.0.0.1', port: this.#server.port });
    try {
      await waitUntil('gearmand to finish all jobs', async () =>
        (await admin.status()).every(({ total }) => total === 0),
      );
    } finally {
      await admin.close();
    }
  }
}

function argument(imageId: string): string {
  return JSON.stringify({ 'image-id': imageId });
}
