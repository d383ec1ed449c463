import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cp, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import type { BuilderServices, BuildJob, DiskImage, Image } from '@nodepool-builder/image-builder';
import { NO_SERVICES } from '../../../test/fixtures/builder-services.ts';
import { RepositoryFixture } from '../../../test/fixtures/repository-fixture.ts';
import { undoAfter } from '../../../test/fixtures/undo-after.ts';
import { InstanceReaper, type OnInstance, OnInstanceBuilder } from '../src/index.ts';
import { type InstanceRecord, InstanceRecords } from '../src/instance-records.ts';
import { generateKeyPair } from '../src/ssh/identity.ts';
import { configurationDigest } from '../src/step-inputs.ts';
import { type SshdInstance, SshdInstances, type SshdInstancesOptions } from './sshd-instances.ts';

/** Default image-id of builds. */
export const IMAGE_ID = 'custom-0000000001';

const DISKIMAGE: DiskImage = { name: 'custom', formats: ['raw'] };

/** Settings without steps. */
export function onInstanceOf(baseImage: string): OnInstance {
  return {
    provider: 'sshds',
    'base-image': baseImage,
    username: 'root',
    shell: 'posix',
    steps: [],
    sysprep: false,
    'boot-timeout': 120,
    'stop-timeout': 120,
    'after-restart': 'destroy',
  };
}

/** A host that builds on instances, with its provider and its images. */
export class OnInstanceSite {
  readonly repository: RepositoryFixture;
  readonly provider: SshdInstances;
  /** Directory with the disk content of each instance. */
  readonly base: string;
  /** `script-dir`. */
  readonly scripts: string;
  /** Lines of all build logs. */
  readonly lines: string[] = [];

  private constructor(repository: RepositoryFixture, provider: SshdInstances, outside: string) {
    this.repository = repository;
    this.provider = provider;
    this.base = join(outside, 'base');
    this.scripts = join(outside, 'scripts');
  }

  static async start(t: TestContext, options: SshdInstancesOptions = {}): Promise<OnInstanceSite> {
    const repository = await RepositoryFixture.open(t);
    const { outside } = repository;
    const provider = new SshdInstances(join(outside, 'instances'), options);
    const site = new OnInstanceSite(repository, provider, outside);
    await mkdir(site.base);
    await mkdir(site.scripts);
    undoAfter(t, () => site.provider.close());
    return site;
  }

  /**
   * Returns the site of the next process after a crash of this one, with copies of the current records and the
   * instances. The builds of this site continue, but do not affect either.
   */
  async crash(t: TestContext): Promise<OnInstanceSite> {
    const next = await RepositoryFixture.open(t);
    const { directory } = new InstanceRecords(this.repository.repository);
    await cp(directory, new InstanceRecords(next.repository).directory, { recursive: true });
    return new OnInstanceSite(next, this.provider.crash(), this.repository.outside);
  }

  /** Returns a builder of a new process. */
  builder(
    settings: Partial<OnInstance> = {},
    diskimage: Partial<DiskImage> = {},
    services: Partial<BuilderServices> = {},
  ): OnInstanceBuilder {
    return new OnInstanceBuilder({ ...DISKIMAGE, ...diskimage }, this.#settings(settings), {
      ...NO_SERVICES,
      instanceProvider: () => this.provider,
      ...services,
    });
  }

  /**
   * Leaves an instance that does not accept logins, with the record of its build, like a crash of the host.
   */
  async leaveBehind(settings: Partial<OnInstance>, entry: Partial<InstanceRecord>): Promise<SshdInstance> {
    const silent = { ...this.provider.options, isDead: true };
    const instance = await new SshdInstances(this.provider.directory, silent, this.provider).launch({
      buildId: IMAGE_ID,
      image: this.base,
      publicKey: 'none',
      port: 22,
    });
    const onInstance = this.#settings(settings);
    const claim = new InstanceRecords(this.repository.repository).tryClaim(IMAGE_ID);
    await claim?.keepKey(generateKeyPair('test').privateKey);
    await claim?.write({
      provider: this.provider.name,
      phase: 'running',
      stepsDone: 0,
      afterRestart: onInstance['after-restart'],
      recipe: await configurationDigest(
        onInstance,
        { diskimage: DISKIMAGE, environment: process.env },
        '/opt/nodepool-scripts',
      ),
      ...entry,
    });
    claim?.release();
    return instance;
  }

  async build(builder: OnInstanceBuilder, job: Partial<BuildJob> = {}): Promise<Image> {
    return await builder.build({
      imageId: IMAGE_ID,
      repository: this.repository.repository,
      ...job,
      onLine: (line) => {
        this.lines.push(line);
        job.onLine?.(line);
      },
    });
  }

  /** Returns the content of a file in an image. */
  read({ files }: Image, name: string): string {
    return execFileSync('tar', ['-xOf', files[0]?.path ?? '', `./${name}`], { encoding: 'utf8' });
  }

  /** Lists the names of all files in an image. */
  names({ files }: Image): readonly string[] {
    return execFileSync('tar', ['-tf', files[0]?.path ?? ''], { encoding: 'utf8' }).split('\n');
  }

  /** Lists the names of the instance records. */
  async recordFiles(): Promise<readonly string[]> {
    return await readdir(new InstanceRecords(this.repository.repository).directory).catch(() => []);
  }

  /** Changes the record of the build. */
  async changeEntry(change: Partial<InstanceRecord>): Promise<void> {
    const claim = new InstanceRecords(this.repository.repository).tryClaim(IMAGE_ID);
    const entry = await claim?.read();
    if (claim === undefined || entry === undefined) throw new Error('the build has no record');
    await claim.write({ ...entry, ...change });
    claim.release();
  }

  /** Providers of the orphans that reapers have deleted. */
  readonly deletedOrphans: string[] = [];

  /** Starts a reaper, as a new process does, and waits for its first scan. */
  async reaper(): Promise<InstanceReaper> {
    const { repository, logger } = this.repository;
    const reaper = await InstanceReaper.start({
      repository: repository,
      instanceProviders: () => [this.provider],
      logger: () => logger,
      onOrphanDeleted: (provider) => this.deletedOrphans.push(provider),
    });
    await reaper.scan();
    return reaper;
  }

  /** Makes the base image's system ignore the power-off command, except for {@link wasAskedToPowerOff}. */
  async keepOn(): Promise<void> {
    await mkdir(join(this.base, 'usr-local/sbin'), { recursive: true });
    const script = '#!/bin/sh\ntouch /run/asked-to-power-off\n';
    await writeFile(join(this.base, 'usr-local/sbin/poweroff'), script, { mode: 0o755 });
  }

  /** True if the last instance has run the power-off command. */
  get wasAskedToPowerOff(): boolean {
    const { launched } = this.provider;
    return launched.length > 0 && existsSync(join(this.provider.instance.disk, 'run/asked-to-power-off'));
  }

  /** Creates a key pair for the base image. */
  async makeKey(): Promise<{ privateKey: string; publicKey: string }> {
    const privateKey = join(this.repository.outside, 'key');
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', privateKey]);
    const [, publicKey = ''] = (await readFile(`${privateKey}.pub`, 'utf8')).split(' ');
    return { privateKey, publicKey };
  }

  #settings(settings: Partial<OnInstance>): OnInstance {
    return { ...onInstanceOf(this.base), ...settings };
  }
}
