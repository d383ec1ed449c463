import { readFile } from 'node:fs/promises';
import { dirname, join, normalize } from 'node:path';

/** Modules that start programs. */
const STARTS_PROGRAMS: ReadonlySet<string> = new Set(['node:child_process', 'node:cluster', 'execa']);

/** Line with which a test file or helper excludes itself, because it starts programs indirectly or takes seconds. */
const EXCLUSION = /^\/\/ (?:Not a unit test|Only in test:all): \S/m;

/** Matches the specifiers of imports that exist at run time. */
const IMPORTS = /^(?:import|export)\s(?!type\s)(?:[^'";]*?\sfrom\s)?'([^']+)'/gm;

/**
 * Selects the unit tests from test files: those that, including their imported test helpers, import no module that
 * starts programs and have no line `// Not a unit test: REASON` or `// Only in test:all: REASON`. Helpers are modules
 * outside `src`.
 *
 * @param root - the top of the project
 * @param testFiles - paths relative to it
 */
export async function unitTestsAmong(testFiles: readonly string[], root: string): Promise<string[]> {
  const known = new Map<string, Promise<readonly string[] | undefined>>();
  const unitTests: string[] = [];
  for (const file of testFiles) {
    if (await isUnit(file)) unitTests.push(file);
  }
  return unitTests;

  async function isUnit(file: string): Promise<boolean> {
    const seen = new Set([file]);
    for (const module of seen) {
      const reading = known.get(module) ?? helpersOf(module, root);
      known.set(module, reading);
      const helpers = await reading;
      if (!helpers) return false;
      for (const helper of helpers) seen.add(helper);
    }
    return true;
  }
}

/** Returns the test helpers that a module imports; undefined if a unit test must not import the module. */
async function helpersOf(module: string, root: string): Promise<readonly string[] | undefined> {
  const source = await readFile(join(root, module), 'utf8');
  const specifiers = Array.from(source.matchAll(IMPORTS), ([, specifier = '']) => specifier);
  if (EXCLUSION.test(source) || specifiers.some((specifier) => STARTS_PROGRAMS.has(specifier)))
    return undefined;
  return specifiers.flatMap((specifier) => helperAt(specifier, module) ?? []);
}

/** Returns the path of an imported helper; undefined for any other module. */
function helperAt(specifier: string, importer: string): string | undefined {
  if (!specifier.startsWith('.')) return undefined;
  const path = normalize(join(dirname(importer), specifier));
  return path.endsWith('.ts') && !/(?:^|\/)src\//.test(path) ? path : undefined;
}
