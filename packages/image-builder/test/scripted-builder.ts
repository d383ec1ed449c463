import type { FullBuildContext } from '../src/context.ts';
import { BaseImageBuilder, type DiskImage } from '../src/index.ts';

/** A builder whose behaviour a test defines. */
export class ScriptedBuilder extends BaseImageBuilder {
  readonly #script: (context: FullBuildContext) => Promise<void>;

  constructor(script: (context: FullBuildContext) => Promise<void>, diskimage: Partial<DiskImage> = {}) {
    super({ name: 'debian', formats: ['raw'], ...diskimage });
    this.#script = script;
  }

  protected override async createImage(context: FullBuildContext): Promise<void> {
    await this.#script(context);
  }
}

/** Creates a small image in each wanted format. */
export async function makeImage({ formats, outputPath, run }: FullBuildContext): Promise<void> {
  for (const format of formats) await run('sh', ['-c', 'printf content > "$1"', 'sh', outputPath(format)]);
}
