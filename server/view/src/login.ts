// Logging in: with a token that is typed, or at the authorization server that the endpoint names (OAuth 2.1 with PKCE).
// Tokens stay in this tab, and are sent to the endpoint and that server alone.

import { button, byId, el, plain, reasonOf, refill } from "./dom";
import { type Data, isData, textOf, textsOf } from "./json";

type Texts = Readonly<Record<string, string>>;

/** The token, with the parameters of its request and the refresh token. */
const GRANT = "kg-sextant-grant";
/** The request to the authorization server, until it answers. */
const ASKED = "kg-sextant-asked";
const PATIENCE_MS = 20_000;

let problem = "";
let renewing: Promise<boolean> | null = null;

export function token(): string {
  const { token = "" } = kept(GRANT);
  // A header can hold no other, such as the dots that stand for one.
  return /^[!-~]*$/.test(token) ? token : "";
}

/** Finish a login whose answer is in the address of the page, and remove it from there. */
export async function finish(): Promise<void> {
  const answer = read(location.search);
  if (!answer.code && !answer.error) return;
  const asked = kept(ASKED);
  sessionStorage.removeItem(ASKED);
  history.replaceState(null, "", location.pathname + (asked.hash ?? ""));
  await redeem(asked, () => {
    const code = codeIn(answer, asked);
    return { grant_type: "authorization_code", code, code_verifier: asked.verifier ?? "" };
  });
}

/** Get another token after one was refused; false where there is none. */
export async function renew(refusal: Response, refused: string, tries: number): Promise<boolean> {
  if (token() !== refused) return true;
  renewing ??= another(refusal, tries).finally(() => {
    renewing = null;
  });
  return await renewing;
}

async function another(refusal: Response, tries: number): Promise<boolean> {
  const challenge = readChallenge(refusal.headers.get("www-authenticate") ?? "");
  const grant = kept(GRANT);
  const { refresh = "", scope = "" } = grant;
  const wanted = [...new Set(`${scope} ${challenge.scope ?? ""}`.trim().split(" "))].join(" ");
  if (refusal.status === 403) {
    // Once: a scope that was not granted then is not requested again.
    if (!challenge.resource_metadata || grant.tried === challenge.scope) return false;
    keep(GRANT, { ...grant, tried: challenge.scope ?? "" });
  } else if (refresh && !tries) {
    if (await redeem(grant, () => ({ grant_type: "refresh_token", refresh_token: refresh }))) return true;
  }
  return await ask(challenge, wanted);
}

/** Ask people to log in; false if they close the dialog. */
async function ask({ resource_metadata, error_description }: Texts, scope: string): Promise<boolean> {
  const said = el("p", { role: "alert" }, problem || error_description || "The server asks for a login.");
  problem = "";
  const fail = (error: unknown): void => {
    said.textContent = reasonOf(error);
  };
  // The same origin has this document too, whatever host name the page was opened by.
  const found = resource_metadata ? await get(new URL(resource_metadata).pathname).catch(fail) : null;
  const [issuer] = textsOf(found?.authorization_servers);
  const dialog = byId("dialog", HTMLDialogElement);
  return await new Promise((resolve) => {
    const name = { "aria-label": "Token", placeholder: "Token" };
    const typed = el("input", { ...name, type: "password", autocomplete: "off", required: true });
    const onsubmit = (event: Event): void => {
      event.preventDefault();
      keep(GRANT, { token: typed.value.trim() });
      resolve(true);
      dialog.close();
    };
    const leave = (): void => void depart(issuer ?? "", textOf(found?.resource), scope).catch(fail);
    dialog.onclose = () => resolve(false);
    refill(
      dialog,
      el("h2", {}, "Log in"),
      said,
      issuer && el("p", {}, button(`Log in with ${new URL(issuer).host}`, leave, { class: "first" })),
      el("form", { onsubmit }, typed, el("p"), el("button", { class: !issuer && "first" }, "Log in")),
    );
    dialog.setAttribute("aria-label", "Log in");
    dialog.showModal();
  });
}

/** Go to an authorization server, which leads back to this page. */
async function depart(issuer: string, resource: string, scope: string): Promise<void> {
  const described = await get("client.json");
  const client_id = textOf(described.client_id);
  const [redirect_uri = ""] = textsOf(described.redirect_uris);
  if (redirect_uri !== location.href.replace(/[?#].*/, "")) throw new Error(`Log in at ${redirect_uri}`);
  if (!isSecureContext) throw new Error("Logging in there takes HTTPS.");
  // Each place is tried if those before it failed.
  const nothing = Promise.reject<Data>();
  const server = await placesOf(issuer).reduce((before, place) => before.catch(() => get(place)), nothing);
  const takes = server.client_id_metadata_document_supported === true && isSafe(redirect_uri, issuer);
  if (!takes && client_id === `${redirect_uri}client.json`)
    throw new Error(
      `Register this page at ${issuer}, as a public client that returns to ${redirect_uri}, and set ` +
        "hosting.page_client_id.",
    );
  const [address, asked] = await requestTo(server, issuer, { client_id, redirect_uri, resource }, scope);
  keep(ASKED, { ...asked, hash: location.hash });
  location.assign(address);
}

/** Return the address of the login, and what to store until its answer. */
export async function requestTo(
  server: Data,
  issuer: string,
  form: Texts,
  scope: string,
): Promise<[address: string, asked: Texts]> {
  const [address, at] = [textOf(server.authorization_endpoint), textOf(server.token_endpoint)];
  const proves = textsOf(server.code_challenge_methods_supported).includes("S256");
  if (server.issuer !== issuer || !proves || !isSafe(address, issuer) || !isSafe(at, issuer))
    throw new Error(`The metadata of ${issuer} does not suffice (issuer, PKCE with S256, HTTPS).`);
  const [state, verifier] = [crypto.randomUUID(), crypto.randomUUID() + crypto.randomUUID()];
  const url = new URL(address);
  const code_challenge = await proofOf(verifier);
  const more = { scope, state, response_type: "code", code_challenge, code_challenge_method: "S256" };
  for (const [name, value] of Object.entries({ ...form, ...more })) url.searchParams.set(name, value);
  const from = server.authorization_response_iss_parameter_supported === true ? "" : issuer;
  return [url.href, { form: write(form), scope, at, issuer, from, state, verifier }];
}

/** Return the code in an answer to what was asked (RFC 6749, RFC 9207). */
export function codeIn(answer: Texts, { state, issuer, from }: Texts): string {
  if (!state || answer.state !== state || (answer.iss ?? from) !== issuer)
    throw new Error("What came back answers no login that this tab began.");
  if (answer.code) return answer.code;
  throw new Error(`${issuer} did not let you in: ${plain(answer.error_description ?? answer.error ?? "", 300)}`);
}

/** Exchange a code or refresh token for a token, and store it; false if that fails. */
async function redeem(asked: Texts, proof: () => Texts): Promise<boolean> {
  const { form = "", scope = "", at = "", refresh = "" } = asked;
  try {
    const told = await get(at, write({ ...read(form), ...proof() }));
    const given = textOf(told.access_token);
    if (!given || !/^bearer$/i.test(textOf(told.token_type))) throw new Error(`${at} gave no token to use.`);
    keep(GRANT, { ...kept(GRANT), form, scope, at, refresh: textOf(told.refresh_token) || refresh, token: given });
    return true;
  } catch (error) {
    problem = reasonOf(error);
    return false;
  }
}

/** Return where the metadata of an issuer may lie, in the order to ask (RFC 8414, OpenID Connect Discovery). */
export function placesOf(issuer: string): string[] {
  const { origin, pathname } = new URL(issuer);
  const path = pathname.replace(/\/$/, "");
  const openid = "/.well-known/openid-configuration";
  return [`${origin}/.well-known/oauth-authorization-server${path}`, origin + openid + path, origin + path + openid];
}

/** Read the parameters of a challenge (RFC 6750, RFC 9728). */
export function readChallenge(header: string): Texts {
  return Object.fromEntries([...header.matchAll(/(\w+)="([^"]*)"/g)].map(([, name, value]) => [name, value]));
}

/** Return the code challenge of a verifier (RFC 7636). */
export async function proofOf(verifier: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(verifier));
  const text = btoa(String.fromCharCode(...new Uint8Array(digest)));
  return text.replaceAll("+", "-").replaceAll("/", "_").replace("=", "");
}

/** Send a request without cookies or redirects, and return its answer. */
async function get(place: string, form = ""): Promise<Data> {
  const init: RequestInit = {
    credentials: "omit",
    redirect: "error",
    signal: AbortSignal.timeout(PATIENCE_MS),
    ...(form && { method: "POST", body: new URLSearchParams(form) }),
  };
  const response = await fetch(place, init).catch(() => {
    throw new Error(`${place} does not answer, or no pages of ${location.origin} (CORS).`);
  });
  const found: unknown = await response.json().catch(() => null);
  const told = isData(found) ? found : {};
  if (response.ok) return told;
  throw new Error(`${place} answers ${response.status}. ${plain(textOf(told.error_description ?? told.error), 300)}`);
}

/** Whether an address has the scheme of its issuer: HTTPS, or HTTP on this machine. */
function isSafe(address: string, issuer: string): boolean {
  return address.startsWith(new URL(issuer).protocol);
}

function read(query: string): Texts {
  return Object.fromEntries(new URLSearchParams(query));
}

function write(texts: Texts): string {
  return new URLSearchParams(texts).toString();
}

function kept(name: string): Texts {
  return read(sessionStorage.getItem(name) ?? "");
}

function keep(name: string, texts: Texts): void {
  sessionStorage.setItem(name, write(texts));
}
