// Requests to this server, with the token from the address that `cdclake ui` printed.

const KEPT = "cdclake-token";

// The token leaves the address at once, so that it is neither bookmarked nor shown.
export function takeToken() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given === null) return;
  sessionStorage.setItem(KEPT, given);
  history.replaceState(null, "", "#/");
}

export async function ask(name, query = []) {
  const parameters = new URLSearchParams(query);
  const headers = { Authorization: `Bearer ${sessionStorage.getItem(KEPT) ?? ""}` };
  let reply;
  try {
    reply = await fetch(`/api/${name}?${parameters}`, { headers });
  } catch {
    throw failure("the server does not answer", "run `cdclake ui` again and open its address");
  }
  const answer = await reply.json();
  if (answer.error) throw failure(answer.error.message, answer.error.remedy);
  return answer;
}

function failure(message, remedy) {
  return Object.assign(new Error(message), { remedy });
}
