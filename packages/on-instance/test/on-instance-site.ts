import { execFileSync } from 'node:child_process';
import { cp, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import type { BuildJob, DiskImage, Image } from '@nodepool-builder/image-builder';
import { RepositoryFixture } from '../../../test/fixtures/repository-fixture.ts';
import { undoAfter } from '../../../test/fixtures/undo-after.ts';
import { InstanceReaper, type OnInstance, OnInstanceBuilder } from '../src/index.ts';
import { type InstanceRecord, InstanceRecords } from '../src/instance-records.ts';
import { generateKeyPair } from '../src/ssh/identity.ts';
import { configurationDigest } from '../src/step-inputs.ts';
import { type SshdInstance, SshdInstances, type SshdInstancesOptions } from './sshd-instances.ts';

/** What a build is asked for with, unless a test says otherwise. */
export const IMAGE_ID = 'custom-0000000001';

const DISKIMAGE: DiskImage = { name: 'custom', formats: ['raw'] };

/** Settings without steps. */
export function onInstanceOf(baseImage: string): OnInstance {
  return {
    provider: 'sshds',
    'base-image': baseImage,
    username: 'root',
    connection: 'ssh',
    shell: 'posix',
    steps: [],
    sysprep: false,
    'boot-timeout': 20,
    'stop-timeout': 20,
    'after-restart': 'destroy',
  };
}

/** A host that builds on instances, a provider, and what was built. */
export class OnInstanceSite {
  readonly repository: RepositoryFixture;
  readonly provider: SshdInstances;
  /** What comes on the disk of each instance. */
  readonly base: string;
  /** `script-dir`. */
  readonly scripts: string;
  /** All lines of all build logs, as they came. */
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
   * What the next process finds after this one was killed: the files as they are now, and the instances. What is under
   * way here goes on, but has no effect on them.
   */
  async crash(t: TestContext): Promise<OnInstanceSite> {
    const next = await RepositoryFixture.open(t);
    const { directory } = new InstanceRecords(this.repository.repository);
    await cp(directory, new InstanceRecords(next.repository).directory, { recursive: true });
    return new OnInstanceSite(next, this.provider.crash(), this.repository.outside);
  }

  /** A builder, as a process that has just started has it. */
  builder(settings: Partial<OnInstance> = {}, diskimage: Partial<DiskImage> = {}): OnInstanceBuilder {
    return new OnInstanceBuilder({ ...DISKIMAGE, ...diskimage }, this.#settings(settings), {
      instanceProvider: () => this.provider,
    });
  }

  /**
   * An instance that nobody can log in to, and what a process that ended as suddenly as a machine does remembers of the
   * build.
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

  /** A file of an image. */
  read({ files }: Image, name: string): string {
    return execFileSync('tar', ['-xOf', files[0]?.path ?? '', `./${name}`], { encoding: 'utf8' });
  }

  /** The names of all files of an image. */
  names({ files }: Image): readonly string[] {
    return execFileSync('tar', ['-tf', files[0]?.path ?? ''], { encoding: 'utf8' }).split('\n');
  }

  /** What is remembered of instances: the names of the files. */
  async remembered(): Promise<readonly string[]> {
    return await readdir(new InstanceRecords(this.repository.repository).directory).catch(() => []);
  }

  /** What is remembered of the build, changed for the next one to find. */
  async changeEntry(change: Partial<InstanceRecord>): Promise<void> {
    const claim = new InstanceRecords(this.repository.repository).tryClaim(IMAGE_ID);
    const entry = await claim?.read();
    if (claim === undefined || entry === undefined) throw new Error('nothing is remembered');
    await claim.write({ ...entry, ...change });
    claim.release();
  }

  /** What has looked after the instances once, as a process that has just started has it. */
  async keeper(): Promise<InstanceReaper> {
    const { repository, logger } = this.repository;
    const keeper = await InstanceReaper.start({
      repository: repository,
      instanceProviders: () => [this.provider],
      logger: () => logger,
    });
    await keeper.scan();
    return keeper;
  }

  /** Has the system of the base image stay on when it is told to power off. */
  async keepOn(): Promise<void> {
    await mkdir(join(this.base, 'usr-local/sbin'), { recursive: true });
    await writeFile(join(this.base, 'usr-local/sbin/poweroff'), '#!/bin/sh\n', { mode: 0o755 });
  }

  /** A key that the base image knows. */
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
