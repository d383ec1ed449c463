import type { Material, RequiredAttestation } from '@nodepool-builder/image-builder';
import { matchesGlob } from '@nodepool-builder/image-builder/internal';
import type { BuildFacts } from './build-statement.ts';
import type { ChainReport } from './chain.ts';
import type { Package } from './types.ts';

/**
 * Compares an image's chain with the rules of `require-attestation`.
 *
 * @param packages reads the bill of materials of the build; called only if a rule needs it
 * @param now time of the verification
 * @returns the broken rule and the reason; undefined if the image follows all
 */
export async function checkGate(
  rules: RequiredAttestation,
  report: ChainReport,
  packages: (build: BuildFacts) => Promise<readonly Package[]>,
  now: Date = new Date(),
): Promise<string | undefined> {
  const gap = report.links.find(({ kind, state }) => state !== 'proven' && kind !== 'materials');
  if (report.state !== 'proven') return `trusted-keys: ${gap?.reason ?? 'no attestation was found'}`;
  const facts = report.build;
  if (facts === undefined) return 'trusted-keys: no attestation of the build was found';
  return (
    refusedBuilder(rules, facts) ??
    refusedRepository(rules, facts) ??
    refusedAge(rules, facts, now) ??
    (await refusedPackage(rules, () => packages(facts)))
  );
}

function refusedBuilder(
  { builders = [] }: RequiredAttestation,
  { builderId }: BuildFacts,
): string | undefined {
  if (builders.length === 0 || builders.some((one) => matchesGlob(builderId, one))) return undefined;
  return `builders: the builder ${builderId} is not one of ${builders.join(', ')}`;
}

function refusedRepository(
  { 'source-repositories': sourceRepositories = [] }: RequiredAttestation,
  { materials }: BuildFacts,
): string | undefined {
  if (sourceRepositories.length === 0) return undefined;
  const accepted = sourceRepositories.join(', ');
  const sources = materials.filter(isRepository);
  if (sources.length === 0) return 'source-repositories: the attestation of the build names no repository';
  for (const { name, uri, annotations } of sources) {
    const repository = uri && repositoryOf(uri);
    if (repository === undefined) return `source-repositories: the repository of ${name} has no address`;
    if (!sourceRepositories.some((one) => matchesGlob(repository, one))) {
      return `source-repositories: ${repository} (${name}) is not one of ${accepted}`;
    }
    if (annotations?.isModified === true) {
      return `source-repositories: ${repository} (${name}) had uncommitted changes`;
    }
  }
  return undefined;
}

/** A build in the future is refuted in the chain. */
function refusedAge(
  { 'max-age': maxAge }: RequiredAttestation,
  { finishedAt }: BuildFacts,
  now: Date,
): string | undefined {
  if (maxAge === undefined) return undefined;
  if (finishedAt === undefined) return 'max-age: the attestation does not contain the end of the build';
  const seconds = (now.getTime() - finishedAt.getTime()) / 1000;
  if (seconds <= maxAge) return undefined;
  return `max-age: the build finished ${Math.round(seconds)} s ago, which exceeds ${maxAge} s`;
}

async function refusedPackage(
  { 'forbidden-packages': forbiddenPackages = [] }: RequiredAttestation,
  read: () => Promise<readonly Package[]>,
): Promise<string | undefined> {
  if (forbiddenPackages.length === 0) return undefined;
  let packages: readonly Package[];
  try {
    packages = await read();
  } catch (error) {
    return `forbidden-packages: the bill of materials cannot be read: ${(error as Error).message}`;
  }
  const forbidden = new Set(forbiddenPackages);
  const found = packages.find(
    ({ name, version }) => forbidden.has(name) || forbidden.has(`${name}@${version}`),
  );
  return found && `forbidden-packages: the image contains ${found.name} ${found.version}`;
}

function isRepository({ uri, digest }: Material): boolean {
  return digest.gitCommit !== undefined || uri?.startsWith('git+') === true;
}

/** Converts `git+https://HOST/PATH@REVISION` to `https://HOST/PATH`. */
function repositoryOf(uri: string): string {
  return uri.replace(/^git\+/, '').replace(/@[\da-f]{7,64}$/, '');
}
