import { deepEqual, equal } from 'node:assert/strict';
import { describe, it } from 'node:test';
import { loadCloudSettings } from '../../src/settings/load-cloud-settings.ts';
import { ENVIRONMENTS, EXPECTED, FILES, PROVIDERS } from './cases/combinations.ts';
import { sdkView } from './openstacksdk.ts';
import type { SettingsCase } from './settings-case.ts';
import { settingsTree } from './settings-tree.ts';

/** Settings that the tests compare. */
interface View {
  readonly credentials: Readonly<Record<string, unknown>>;
  readonly region: unknown;
  readonly format: unknown;
  readonly tasks: unknown;
}

const OWN: View = { credentials: {}, region: undefined, format: 'qcow2', tasks: false };

function credentialsOf(word: string): View['credentials'] {
  return { auth_url: `https://${word}.example`, username: word, password: word, project_name: word };
}

/** Returns the cloud settings for a letter of the table, without the provider’s. */
function cloudOf(letter: string, environment: Readonly<Record<string, string>>): View {
  if (letter === 'o') return OWN;
  if (letter !== 'e')
    return { credentials: credentialsOf('file'), region: 'DFW', format: 'vhd', tasks: true };
  const { OS_REGION_NAME: region, OS_AUTH_URL: url } = environment;
  return { ...OWN, credentials: url === undefined ? { password: 'env' } : credentialsOf('env'), region };
}

function onTop(
  view: View,
  { provider = {}, regionName }: Pick<SettingsCase, 'provider' | 'regionName'>,
): View {
  const { username, password, authUrl, projectName } = provider;
  const own = { username, password, auth_url: authUrl, project_name: projectName };
  const said = Object.entries(own).filter(([, value]) => value !== undefined);
  return {
    ...view,
    credentials: { ...view.credentials, ...Object.fromEntries(said) },
    region: regionName ?? view.region,
  };
}

describe('the cloud of a provider', () => {
  for (const [file, variables, row] of EXPECTED) {
    it(`a provider’s cloud with ${file} and ${variables} is the one that os-client-config 1.22 chooses`, async (t) => {
      const env = ENVIRONMENTS[variables];
      const { place } = await settingsTree(t, { files: FILES[file], env });
      const letters = row.split(' ');
      equal(letters.length, Object.keys(PROVIDERS).length);
      for (const [index, [what, provider]] of Object.entries(PROVIDERS).entries()) {
        const letter = letters[index] ?? '';
        const request: Pick<SettingsCase, 'cloud' | 'provider' | 'regionName'> = provider;
        const { cloud, regionName } = request;
        const view = await loadCloudSettings(
          { cloud, regionName, provider: { name: 'provider', ...request.provider } },
          place,
        ).then(viewOf, () => undefined);
        deepEqual(view, letter === '-' ? undefined : onTop(cloudOf(letter, env), request), what);
      }
    });
  }
});

function viewOf(settings: Parameters<typeof sdkView>[0]): View {
  const view = sdkView(settings);
  const names = ['auth_url', 'username', 'password', 'project_name'];
  const found = names.flatMap((name) => {
    const value = view[`auth.${name}`];
    return value === undefined ? [] : [[name, value] as const];
  });
  return {
    credentials: Object.fromEntries(found),
    region: view['image.region'],
    format: view.image_format,
    tasks: view.image_api_use_tasks,
  };
}
