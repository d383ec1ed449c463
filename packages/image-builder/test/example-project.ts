import { execFile } from 'node:child_process';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { promisify } from 'node:util';
import { ROOT } from '../../../test/docs/markdown.ts';
import { temporaryDirectory } from './temporary-directory.ts';

const run = promisify(execFile);

/** A project of somebody who uses the packages, to try what a README shows. */
export class ExampleProject {
  readonly directory: string;

  private constructor(directory: string) {
    this.directory = directory;
  }

  static async create(t: TestContext): Promise<ExampleProject> {
    const project = new ExampleProject(await temporaryDirectory(t));
    await symlink(join(ROOT, 'node_modules'), join(project.directory, 'node_modules'));
    await project.write('package.json', '{ "type": "module" }');
    return project;
  }

  async write(name: string, content: string): Promise<void> {
    await writeFile(join(this.directory, name), content);
  }

  async makeDirectory(name: string): Promise<void> {
    await mkdir(join(this.directory, name));
  }

  /** Runs a program; fails if it fails. */
  async run(name: string): Promise<string> {
    const options = ['--conditions=@nodepool-builder/source', '--disable-warning=ExperimentalWarning'];
    // A test that runs within a test would speak to its parent, not to us.
    const { NODE_TEST_CONTEXT: _, ...env } = process.env;
    const { stdout } = await run(process.execPath, [...options, '--test-reporter=spec', name], {
      cwd: this.directory,
      env,
    });
    return stdout;
  }

  /** Checks the types of all programs; fails if one is wrong. */
  async checkTypes(): Promise<void> {
    const compilerOptions = { incremental: false, tsBuildInfoFile: null, skipLibCheck: true };
    await this.write(
      'tsconfig.json',
      JSON.stringify({ extends: join(ROOT, 'tsconfig.tests.json'), compilerOptions, include: ['*.ts'] }),
    );
    await run(process.execPath, [join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', '.'], {
      cwd: this.directory,
    });
  }
}
